/* within_step: work of a run between the micro-batches of a step: it logs how far the step is, and ends it
 * there if the run is asked to stop, since a step of hundreds of micro-batches may take longer than a
 * scheduler waits before it kills the process.
 *
 * Ranks decide together, before the same round of micro-batches (one on each rank), about once in
 * WITHIN_STEP_SECONDS: each time they find out from the first rank's time how many rounds later they meet
 * again.  So steps that are shorter exchange nothing. */
#ifndef KILN_TASK_WITHIN_STEP_H
#define KILN_TASK_WITHIN_STEP_H

#include "core/batch.h"
#include "core/slow_work.h"
#include "dist/mesh.h"
#include "report/metrics.h"

enum { WITHIN_STEP_SECONDS = 1 };

struct within_step {
    const struct mesh *ranks; /* set by the caller, with those up to stops, once.  Borrowed */
    struct metrics *log;
    struct slow_work *start; /* work until the run's first step; NULL: none is reported */
    bool (*stops)(void);     /* whether this rank is asked to stop: stop_requested */
    int64_t step;            /* the step that runs */
    double n_tokens;
    int64_t begin_ns;
    int64_t n_rounds;
    int64_t next;   /* the round before which ranks decide; the same on all of them */
    int64_t stride; /* rounds between decisions */
};

/* Begins in-phase step `step`; the batch is this rank's, with the counts of all. */
void within_step_begin(struct within_step *w, int64_t step, const struct batch_step *batch);

/* struct micro_hook's next: *abandons if some rank was asked to stop.  Before its last micro-batch a rank
 * takes part in all decisions that are left, since it may have fewer micro-batches than others. */
struct status within_step_next(void *self, struct status so_far, int64_t n_done, int64_t n, bool *abandons);

/* Rounds until ranks decide again, after `rounds` rounds in `seconds`: at most twice those before. */
int64_t within_step_stride(int64_t before, int64_t rounds, double seconds);

#endif
