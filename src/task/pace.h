/* pace: reports once, after a run has trained for a while, how fast this machine is and how long the run will
 * take. */
#ifndef KILN_TASK_PACE_H
#define KILN_TASK_PACE_H

#include "core/batch.h"

enum { PACE_SECONDS = 10 }; /* seconds that are measured, after the first step */

/* Length of the complete run, in micro-batches of all ranks: they keep their tokens while sequences and
 * batches grow. */
struct pace_run {
    double n_micro;           /* micro-batches of a run by steps; 0: it ends by the clock */
    double total_s;           /* seconds of a run by the clock */
    double micro_of_an_epoch; /* micro-batches of an epoch; 0: no epochs */
};

struct pace {
    struct pace_run run;
    int64_t since_ns; /* the end of the first step; 0: it has not ended */
    double n_tokens, n_micro;
    bool told;
};

/* Called after each step.  True, once, with the text of the line: "12.3k tokens a second ..." */
bool pace_step(struct pace *p, const struct batch_step *batch, int64_t now_ns, char *text, size_t size);

#endif
