/* pretrain_inputs: what a pre-training run reads - token stores, vocabulary, model configuration - opened and
 * checked against each other before anything is allocated. */
#ifndef KILN_TRAIN_PRETRAIN_INPUTS_H
#define KILN_TRAIN_PRETRAIN_INPUTS_H

#include "data/bert_loader.h"
#include "data/token_store.h"
#include "nn/bert_config.h"
#include "text/vocab.h"
#include "train/pretrain.h"

struct pretrain_inputs {
    struct vocab vocab;
    struct bert_config model; /* vocab_size filled in from the vocabulary if the file leaves it out */
    struct token_store train, heldout;
    bool has_heldout;
    struct bert_loader loader, heldout_loader;
};

struct status pretrain_inputs_open(struct pretrain_inputs *in, const struct pretrain_options *o);

/* Safe on a zeroed struct and after a failed open. */
void pretrain_inputs_close(struct pretrain_inputs *in);

#endif
