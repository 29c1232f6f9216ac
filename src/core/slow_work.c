#include "core/slow_work.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/signals.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static const int64_t SECOND_NS = 1000000000;

static struct timespec at(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
}

/* clock_ns is the clock of the condition. */
static void *watch(void *self)
{
    struct slow_work *w = self;
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        struct timespec until = at(w->since_ns + w->after_ns);
        if (w->phase[0] == '\0' || w->told) {
            pthread_cond_wait(&w->changed, &w->lock);
        } else if (clock_ns() < w->since_ns + w->after_ns) {
            pthread_cond_timedwait(&w->changed, &w->lock, &until);
        } else {
            w->told = true;
            log_info("still %s after %.3g s", w->phase, clock_since_s(w->since_ns));
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are for the thread that works: its blocking calls end by them. */
static void begin(struct slow_work *w)
{
    pthread_condattr_t monotonic;
    sigset_t before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->after_ns = w->after_ns > 0 ? w->after_ns : SLOW_WORK_SECONDS * SECOND_NS;
    w->ends = false;
    signals_block(&before);
    w->has_thread = pthread_create(&w->thread, NULL, watch, w) == 0;
    signals_restore(&before);
    if (!w->has_thread) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
    }
}

void slow_work_phase(struct slow_work *w, const char *format, ...)
{
    va_list args;
    if (!w->has_thread) {
        begin(w);
    }
    if (!w->has_thread) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    va_start(args, format);
    w->phase[0] = '\0';
    if (format != NULL) {
        vsnprintf(w->phase, sizeof w->phase, format, args);
    }
    va_end(args);
    w->since_ns = clock_ns();
    w->told = false;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void slow_work_end(struct slow_work *w)
{
    if (!w->has_thread) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    w->has_thread = false;
    w->phase[0] = '\0';
}
