/* validation: losses on held-out samples, of which each evaluation takes those that follow the last one's.
 * The ranks of `data`, which have the same part of the model, share the samples. */
#ifndef KILN_TASK_VALIDATION_H
#define KILN_TASK_VALIDATION_H

#include "data/batch_source.h"
#include "dist/comm.h"
#include "train/trainer.h"

struct validation {
    const struct batch_source *source; /* borrowed */
    struct batch_step room;            /* one micro-batch */
};

struct status validation_init(struct validation *v, const struct batch_source *source);

/* Safe on a zeroed struct. */
void validation_fini(struct validation *v);

/* Samples [first, first + n) in micro-batches of `micro`, which divides both; *result on all ranks. */
struct status validation_run(struct validation *v, struct trainer *t, const struct comm *data, int64_t first,
                             int64_t n, int64_t micro, struct trainer_result *result);

#endif
