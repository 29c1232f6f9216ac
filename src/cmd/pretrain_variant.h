/* pretrain_variant: tables of flags of `kiln pretrain`: the two scripts run_pretraining.py that it stands
 * for, and all in which they differ, for BERT-large, and with --deepspeed for BERT-1.5B and 5B
 * (docs/quirks.md); and --recipe, flags that go together. */
#ifndef KILN_CMD_PRETRAIN_VARIANT_H
#define KILN_CMD_PRETRAIN_VARIANT_H

#include "cmd/rank_run.h"
#include "core/launcher.h"
#include "core/option.h"
#include "task/bert/bert_pretrain.h"
#include "task/gpt/gpt_pretrain.h"

#define PRETRAIN_RECIPES "modern|reference|deepspeed"

struct pretrain_args {
    struct pretrain_options run;
    struct bert_pretrain_options bert;
    struct gpt_pretrain_options gpt;
    struct launcher_flags launcher;
    struct mesh_flags mesh;
    struct option_given given;
    bool deepspeed, use_zero_optimizer;
    double dropout;     /* the largest of a decoder's configuration */
    const char *recipe; /* name in PRETRAIN_RECIPES; NULL: none */
    const char *arch;   /* the architecture that the sizes of config_file get; NULL: the file says it */
};

/* Gives the flags that were not given the defaults of the variant that was asked for, or of a decoder, reads
 * --deepspeed_config, and finds kiln's name of the optimizer.  STATUS_USAGE names a flag of the other
 * variant. */
struct status pretrain_variant_apply(const struct command *c, struct pretrain_args *a);

/* Gives the flags of a->recipe, a decoder's or BERT's, unless they were given themselves, as if they had
 * been, and logs them.  Without a recipe it does nothing.  STATUS_USAGE: --deepspeed is another recipe, or
 * BERT alone has this one. */
struct status pretrain_variant_apply_recipe(const struct command *c, struct pretrain_args *a);

#endif
