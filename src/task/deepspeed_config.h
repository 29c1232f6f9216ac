/* deepspeed_config: DeepSpeed's JSON as settings of a run, for each of its ranks. */
#ifndef KILN_TASK_DEEPSPEED_CONFIG_H
#define KILN_TASK_DEEPSPEED_CONFIG_H

#include "data/batch_source.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "report/deepspeed_log.h"
#include "train/loss_scale.h"

struct deepspeed_config {
    /* per rank, from any two of the file's three keys */
    struct batch_flags batch; /* without max_seq_length */
    bool bf16, fp16;
    struct loss_scale_rule loss_scale; /* fp16 only */
    struct deepspeed_log_settings log;

    const char *optimizer; /* kiln's name; NULL: the file has no optimizer block */
    double learning_rate;  /* rate of the block, or DeepSpeed's default */
    /* values of the block, or DeepSpeed's defaults, but decay and ratios 0 where it has none, and the norm at
     * which gradients are clipped; `kind` and switches are not set */
    struct optimizer update;
    bool has_scheduler;
    struct schedule scheduler; /* SCHEDULE_WARMUP; `base` is not set */
};

/* Reads the file, for --deepspeed_config.  With `own_optimizer` a flag chose the optimizer, and the file's
 * block is not read.  Each key that has no meaning here is logged.  STATUS_DATA names a key that is unknown
 * or contradicts another; STATUS_UNAVAILABLE names what kiln does not support yet. */
struct status deepspeed_config_read(struct deepspeed_config *c, const char *path, bool own_optimizer,
                                    int n_ranks);

#endif
