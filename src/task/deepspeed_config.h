/* deepspeed_config: DeepSpeed's JSON as settings of a run, for each of its ranks. */
#ifndef KILN_TASK_DEEPSPEED_CONFIG_H
#define KILN_TASK_DEEPSPEED_CONFIG_H

#include "optim/schedule.h"
#include "report/deepspeed_log.h"
#include "train/loss_scale.h"

struct deepspeed_config {
    /* per rank, from any two of the file's three keys */
    int64_t train_batch_size, gradient_accumulation_steps;
    double gradient_clipping; /* largest norm; 0: no clipping */
    bool bf16, fp16;
    struct loss_scale_rule loss_scale; /* fp16 only */
    struct deepspeed_log_settings log;

    const char *optimizer;       /* kiln's name; NULL: the file has no optimizer block */
    double learning_rate;        /* rate of the block, or DeepSpeed's default */
    double beta1, beta2, eps;    /* values of the block, or DeepSpeed's defaults */
    double weight_decay;         /* decay of the block, or 0; commands have a flag for it */
    double min_ratio, max_ratio; /* bounds of Lamb: "min_coeff" and "max_coeff"; 0: the optimizer's */
    bool has_scheduler;
    struct schedule scheduler; /* SCHEDULE_WARMUP; `base` is not set */
};

/* Reads the file, for --deepspeed_config.  With `own_optimizer` a flag chose the optimizer, and the file's
 * block is not read.  Each key that has no meaning here is logged.  STATUS_DATA names a key that is unknown
 * or contradicts another; STATUS_UNAVAILABLE names what kiln does not support yet. */
struct status deepspeed_config_read(struct deepspeed_config *c, const char *path, bool own_optimizer,
                                    int n_ranks);

#endif
