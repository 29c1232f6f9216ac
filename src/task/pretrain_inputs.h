/* pretrain_inputs: what a pre-training run reads - samples, vocabulary, model configuration - opened and
 * checked against each other before anything is allocated. */
#ifndef KILN_TASK_PRETRAIN_INPUTS_H
#define KILN_TASK_PRETRAIN_INPUTS_H

#include "data/store_check.h"
#include "text/tokenizer.h"
#include "task/missing.h"
#include "task/pretrain_kind.h"

struct pretrain_inputs {
    struct tokenizer tokenizer;       /* n is 0 if the data came without a vocabulary */
    char vocab_path[FILE_PATH_BYTES]; /* file of the vocabulary; empty: unknown */
    void *config;        /* configuration of the family, with the vocabulary of the data; owned */
    struct model *model; /* owned; NULL in a dry run without --config_file */
    struct pretrain_data train, heldout, test;
    struct batch_limits limits; /* limits of every batch of all data */
    bool assumed;               /* pretrain_inputs_assume set them: there is no data */
    struct run_part part;       /* part of the run that is done */
};

/* Opens the inputs; `in` must not be moved while it is open.  part: the part of the run that is done, with
 * which samples may change. */
struct status pretrain_inputs_open(struct pretrain_inputs *in, const struct pretrain_options *o,
                                   struct run_part part);

/* Names, for a dry run, each missing input that the run does not make; true if an input is missing. */
bool pretrain_inputs_find_missing(const struct pretrain_options *o, struct missing *m);

/* Instead of opening the inputs, sets limits and model as the flags alone say. */
struct status pretrain_inputs_assume(struct pretrain_inputs *in, const struct pretrain_options *o);

/* Safe on a zeroed struct and after a failed open. */
void pretrain_inputs_close(struct pretrain_inputs *in);

/* Frees what made the batches of held-out data, once they are made.  A store stays open. */
void pretrain_inputs_release_heldout(struct pretrain_inputs *in);

/* Makes what only training needs, before the first step. */
struct status pretrain_inputs_begin(struct pretrain_inputs *in, const struct pretrain_options *o);

/* Adds the token stores to the check that runs while training begins. */
struct status pretrain_inputs_add_checks(const struct pretrain_inputs *in, struct store_check *check);

/* Logs the training data, and the flags that it overrides. */
void pretrain_inputs_announce(const struct pretrain_inputs *in, const struct pretrain_options *o);

/* STATUS_DATA unless a model with a vocabulary of this hash, at `path`, may be trained on these inputs. */
struct status pretrain_inputs_check_vocab(const struct pretrain_inputs *in, uint64_t vocab_hash,
                                          const char *path);

#endif
