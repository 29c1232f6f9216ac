/* gpt_pretrain: the pre-training of decoders, GPT-2's and BLOOM's: the next token of one long text. */
#ifndef KILN_TASK_GPT_PRETRAIN_H
#define KILN_TASK_GPT_PRETRAIN_H

#include "task/pretrain_kind.h"

/* Its own flags of `kiln pretrain`: pretrain_options.own. */
struct gpt_pretrain_options {
    bool megatron_order; /* training samples in the order of Megatron-LM's index files */
};

extern const struct pretrain_kind gpt2_pretrain, bloom_pretrain;

#endif
