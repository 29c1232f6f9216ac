/* pretrain_variant: the two scripts run_pretraining.py that `kiln pretrain` stands for, and all in which they
 * differ: for BERT-large, and with --deepspeed for BERT-1.5B and 5B.  docs/quirks.md. */
#ifndef KILN_CMD_PRETRAIN_VARIANT_H
#define KILN_CMD_PRETRAIN_VARIANT_H

#include "core/launcher.h"
#include "core/option.h"
#include "task/bert/bert_pretrain.h"
#include "task/gpt/gpt_pretrain.h"

struct pretrain_args {
    struct pretrain_options run;
    struct bert_pretrain_options bert;
    struct gpt_pretrain_options gpt;
    struct launcher_flags launcher;
    struct option_given given;
    bool deepspeed, use_zero_optimizer;
    const char *recipe; /* pretrain_recipe's; NULL: none */
};

/* Gives the flags that were not given the defaults of the variant that was asked for, reads
 * --deepspeed_config, and finds kiln's name of the optimizer.  STATUS_USAGE names a flag of the other
 * variant. */
struct status pretrain_variant_apply(const struct command *c, struct pretrain_args *a);

#endif
