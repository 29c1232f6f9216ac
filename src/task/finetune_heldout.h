/* finetune_heldout: the loss of fine-tuning on labelled examples that are not trained on. */
#ifndef KILN_TASK_FINETUNE_HELDOUT_H
#define KILN_TASK_FINETUNE_HELDOUT_H

#include "data/sorted_batches.h"
#include "train/trainer.h"

struct finetune_heldout {
    struct sorted_batches batches;
    struct batch_step one; /* a batch at a time, so that memory does not depend on their number */
};

/* Batches of these examples, whose limits must be within the trainer's. */
struct status finetune_heldout_init(struct finetune_heldout *h, const struct example_source *source,
                                    int64_t batch_size, const struct batch_layout *layout, int32_t pad_id);

/* Safe on a zeroed struct. */
void finetune_heldout_fini(struct finetune_heldout *h);

/* The sums of all examples, without dropout. */
struct status finetune_heldout_run(struct finetune_heldout *h, struct trainer *t,
                                   struct trainer_result *result);

#endif
