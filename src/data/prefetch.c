#include "data/prefetch.h"

#include "core/signals.h"

#include <string.h>

/* The trainer uses step next - 1, so steps up to next may be made: they are in the other slot. */
static bool wait_for_room(struct prefetch *p, int64_t number)
{
    pthread_mutex_lock(&p->mutex);
    while (!p->stopping && number > p->next) {
        pthread_cond_wait(&p->changed, &p->mutex);
    }
    bool stopping = p->stopping;
    pthread_mutex_unlock(&p->mutex);
    return !stopping;
}

static void *fill_steps(void *argument)
{
    struct prefetch *p = argument;
    for (int64_t number = p->next; number <= p->last && wait_for_room(p, number); number++) {
        struct prefetch_slot *slot = &p->slots[number % 2];
        struct status s = p->source.fill(p->source.self, number, &slot->step);
        pthread_mutex_lock(&p->mutex);
        slot->status = s;
        slot->number = number;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->mutex);
        if (failed(s)) {
            break;
        }
    }
    return NULL;
}

/* Only the training thread takes signals. */
static int start_thread(struct prefetch *p)
{
    sigset_t before;
    signals_block(&before);
    int error = pthread_create(&p->thread, NULL, fill_steps, p);
    signals_restore(&before);
    return error;
}

struct status prefetch_open(struct prefetch *p, const struct batch_source *source, int part, int n_parts,
                            bool in_turn, int64_t first, int64_t last)
{
    CHECK(first >= 1, "step %lld", (long long)first);
    *p = (struct prefetch){.source = *source, .next = first, .last = last};
    struct status s = status_ok();
    for (int i = 0; i < 2 && !failed(s); i++) {
        s = batch_step_init_part(&p->slots[i].step, source->n_micro, part, n_parts, in_turn, source->layout,
                                 source->limits);
    }
    if (!failed(s)) {
        pthread_mutex_init(&p->mutex, NULL);
        pthread_cond_init(&p->changed, NULL);
        int error = start_thread(p);
        if (error == 0) {
            return s;
        }
        pthread_cond_destroy(&p->changed);
        pthread_mutex_destroy(&p->mutex);
        s = status_error(
            STATUS_MEMORY,
            "cannot start the thread that makes batches: %s; `ulimit -s` and `ulimit -v` limit its stack",
            strerror(error));
    }
    batch_step_fini(&p->slots[0].step);
    batch_step_fini(&p->slots[1].step);
    *p = (struct prefetch){0};
    return s;
}

size_t prefetch_bytes(const struct batch_layout *layout, struct batch_limits limits, int64_t n_micro)
{
    struct prefetch *p = NULL;
    return sizeof p->slots / sizeof p->slots[0] * (size_t)n_micro * batch_bytes(layout, limits);
}

void prefetch_close(struct prefetch *p)
{
    if (p->source.self == NULL) {
        return;
    }
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    batch_step_fini(&p->slots[0].step);
    batch_step_fini(&p->slots[1].step);
    *p = (struct prefetch){0};
}

struct status prefetch_next(struct prefetch *p, const struct batch_step **step)
{
    CHECK(p->next <= p->last, "step %lld behind the last, %lld", (long long)p->next, (long long)p->last);
    pthread_mutex_lock(&p->mutex);
    struct prefetch_slot *slot = &p->slots[p->next % 2];
    while (slot->number != p->next) {
        pthread_cond_wait(&p->changed, &p->mutex);
    }
    struct status s = slot->status;
    if (!failed(s)) {
        p->next++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    *step = failed(s) ? NULL : &slot->step;
    return s;
}
