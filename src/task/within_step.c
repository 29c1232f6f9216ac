#include "task/within_step.h"

#include "core/clock.h"
#include "task/together.h"

int64_t within_step_stride(int64_t before, int64_t rounds, double seconds)
{
    double wanted = seconds > 0 ? (double)rounds * WITHIN_STEP_SECONDS / seconds : (double)rounds;
    double most = 2 * (double)before;
    return wanted < 1 ? 1 : (int64_t)(wanted < most ? wanted : most);
}

void within_step_begin(struct within_step *w, int64_t step, const struct batch_step *batch)
{
    w->step = step;
    w->n_tokens = (double)batch->n_tokens;
    w->begin_ns = clock_ns();
    int n_ranks = w->ranks->data.size;
    w->n_rounds = (batch->n_all_micro + n_ranks - 1) / n_ranks;
    w->stride = w->stride < 1 ? 1 : w->stride;
    w->next = w->stride;
    if (w->start != NULL && w->start->has_thread) {
        slow_work_phase(w->start,
                        "computing the first micro-batch, whose products also choose their algorithms,");
    }
}

static struct status decide(struct within_step *w, struct status so_far, bool *abandons)
{
    double seconds = clock_since_s(w->begin_ns);
    TRY(together_any_beside(&w->ranks->world, so_far, w->stops(), abandons, &seconds, 1));
    w->stride = w->ranks->world.size == 1 ? 1 : within_step_stride(w->stride, w->next, seconds);
    w->next += w->stride;
    return status_ok();
}

struct status within_step_next(void *self, struct status so_far, int64_t n_done, int64_t n, bool *abandons)
{
    struct within_step *w = self;
    int64_t until = n_done + 1 < n ? n_done : w->n_rounds - 1;
    *abandons = false;
    if (n_done > 0 && w->start != NULL && w->start->has_thread) {
        slow_work_phase(w->start, NULL); /* metrics reports the rest of the step */
    }
    metrics_in_step(w->log, w->step, n_done, n, w->n_tokens, w->begin_ns);
    while (w->next <= until && !*abandons) {
        TRY(decide(w, so_far, abandons));
    }
    return status_ok();
}
