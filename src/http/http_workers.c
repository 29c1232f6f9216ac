#include "http/http_workers.h"

#include "core/signals.h"

#include <pthread.h>
#include <stdlib.h>

struct http_worker_call {
    void (*f)(void *self);
    void *self;
    struct http_worker_call *next;
};

struct http_workers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_line *first, *last; /* lines with a call, without a worker */
    bool ends;
    int n_threads;
    pthread_t threads[];
};

static void append_line(struct http_workers *w, struct http_line *line)
{
    line->is_busy = true;
    line->next = NULL;
    if (w->first == NULL) {
        w->first = line;
    } else {
        w->last->next = line;
    }
    w->last = line;
    pthread_cond_signal(&w->changed);
}

/* The line that has waited longest; NULL: all is done, and the workers end. */
static struct http_line *take_line(struct http_workers *w)
{
    while (w->first == NULL && !w->ends) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    struct http_line *line = w->first;
    if (line != NULL) {
        w->first = line->next;
    }
    return line;
}

/* Takes a line, runs one call of it, and lets it wait behind the others if it has more. */
static void *work(void *self)
{
    struct http_workers *w = self;
    pthread_mutex_lock(&w->lock);
    for (struct http_line *line; (line = take_line(w)) != NULL;) {
        struct http_worker_call *call = line->first;
        line->first = call->next;
        pthread_mutex_unlock(&w->lock);
        call->f(call->self);
        free(call);
        pthread_mutex_lock(&w->lock);
        line->is_busy = false;
        if (line->first != NULL) {
            append_line(w, line);
        }
        pthread_mutex_unlock(&w->lock);
        line->release(line);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct status http_workers_create(struct http_workers **workers, int n_threads)
{
    struct http_workers *w = calloc(1, sizeof *w + (size_t)n_threads * sizeof w->threads[0]);
    *workers = w;
    FAIL_IF(w == NULL, STATUS_MEMORY, "out of memory for %d threads", n_threads);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    sigset_t before;
    signals_block(&before);
    while (w->n_threads < n_threads && pthread_create(&w->threads[w->n_threads], NULL, work, w) == 0) {
        w->n_threads++;
    }
    signals_restore(&before);
    return w->n_threads == n_threads
               ? status_ok()
               : status_error(STATUS_MEMORY, "only %d of %d threads can be started", w->n_threads, n_threads);
}

bool http_workers_call(struct http_workers *w, struct http_line *line, void (*f)(void *self), void *self)
{
    struct http_worker_call *call = malloc(sizeof *call);
    CHECK(call != NULL, "out of memory for a call");
    *call = (struct http_worker_call){.f = f, .self = self};
    pthread_mutex_lock(&w->lock);
    if (w->ends) {
        pthread_mutex_unlock(&w->lock);
        free(call);
        return false;
    }
    if (line->first == NULL) {
        line->first = call;
    } else {
        line->last->next = call;
    }
    line->last = call;
    if (!line->is_busy) {
        append_line(w, line);
    }
    pthread_mutex_unlock(&w->lock);
    return true;
}

void http_workers_stop(struct http_workers *w)
{
    if (w == NULL) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n_threads; i++) {
        pthread_join(w->threads[i], NULL);
    }
    w->n_threads = 0;
}

void http_workers_destroy(struct http_workers *w)
{
    if (w == NULL) {
        return;
    }
    http_workers_stop(w);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
