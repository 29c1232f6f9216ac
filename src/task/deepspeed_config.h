/* deepspeed_config: DeepSpeed's JSON as settings of a run, for each of its ranks. */
#ifndef KILN_TASK_DEEPSPEED_CONFIG_H
#define KILN_TASK_DEEPSPEED_CONFIG_H

#include "optim/schedule.h"
#include "report/deepspeed_log.h"
#include "train/loss_scale.h"

struct deepspeed_config {
    int64_t train_batch_size, gradient_accumulation_steps; /* of one rank, each found from the others */
    double gradient_clipping;                              /* 0: none */
    bool bf16, fp16;
    struct loss_scale_rule loss_scale; /* fp16 only */
    struct deepspeed_log_settings log;

    const char *optimizer;       /* kiln's name; NULL: the file has no such block */
    double learning_rate;        /* of the block, or DeepSpeed's default */
    double beta1, beta2, eps;    /* likewise */
    double weight_decay;         /* likewise: 0; commands have a flag for it */
    double min_ratio, max_ratio; /* of Lamb: "min_coeff" and "max_coeff"; 0: the optimizer's */
    bool has_scheduler;
    struct schedule scheduler; /* SCHEDULE_WARMUP; its base is not set */
};

/* Reads the file, for --deepspeed_config.  With `own_optimizer` a flag chose the optimizer, and the file's
 * block is not read.  Each key that has no meaning here is logged.  STATUS_DATA names a key that is unknown
 * or contradicts another; STATUS_UNAVAILABLE names what kiln does not support yet. */
struct status deepspeed_config_read(struct deepspeed_config *c, const char *path, bool own_optimizer,
                                    int n_ranks);

#endif
