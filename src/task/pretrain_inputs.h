/* pretrain_inputs: what a pre-training run reads - token stores or HDF5 shards, vocabulary, model
 * configuration - opened and checked against each other before anything is allocated. */
#ifndef KILN_TASK_PRETRAIN_INPUTS_H
#define KILN_TASK_PRETRAIN_INPUTS_H

#include "data/bert/bert_loader.h"
#include "data/shard_loader.h"
#include "data/store_check.h"
#include "io/token_store.h"
#include "nn/bert/bert_config.h"
#include "text/tokenizer.h"
#include "task/missing.h"
#include "task/pretrain.h"

/* One directory of samples: a token store or HDF5 shards; the other member is zero. */
struct pretrain_data {
    struct token_store store;
    struct bert_loader loader;
    struct shard_loader shards;
    struct batch_source source; /* of the one that is open; its self is NULL if there is no such data */
};

struct pretrain_inputs {
    struct tokenizer tokenizer;       /* n is 0 if shards came without a vocabulary */
    char vocab_path[FILE_PATH_BYTES]; /* its file; empty: unknown */
    struct bert_config model;         /* vocab_size is set from the vocabulary if the file leaves it out */
    struct pretrain_data train, heldout;
    struct batch_limits limits;                   /* of every batch of both */
    char train_dir[SHARD_DIRECTORY_PATH_BYTES];   /* --input_dir, or the directory of training shards in it */
    char heldout_dir[SHARD_DIRECTORY_PATH_BYTES]; /* of held-out shards; a loader borrows it */
    bool assumed;                                 /* by pretrain_inputs_assume: there is no data */
    struct run_part part;                         /* of the run that is done */
    char data_id[160];                            /* what the training data is: run_state's */
};

/* `in` must not be moved while it is open.  part: of the run, which what is drawn may change with. */
struct status pretrain_inputs_open(struct pretrain_inputs *in, const struct pretrain_options *o,
                                   struct run_part part);

/* For a dry run.  True if not all is there, and each that is not is named. */
bool pretrain_inputs_find_missing(const struct pretrain_options *o, struct missing *m);

/* In place of opening: limits and model as the flags alone say.  model.hidden_size is 0 where there is no
 * --config_file. */
struct status pretrain_inputs_assume(struct pretrain_inputs *in, const struct pretrain_options *o);

/* Safe on a zeroed struct and after a failed open. */
void pretrain_inputs_close(struct pretrain_inputs *in);

/* Closes the held-out data's loaders, once its batches are made, to free memory.  A store stays open. */
void pretrain_inputs_close_heldout(struct pretrain_inputs *in);

/* Adds the token stores to the check that runs while training begins. */
struct status pretrain_inputs_add_checks(const struct pretrain_inputs *in, const struct pretrain_options *o,
                                         struct store_check *check);

/* STATUS_DATA if the model has fewer positions than the data. */
struct status pretrain_inputs_check_length(const struct pretrain_inputs *in,
                                           const struct pretrain_options *o);

/* Logs the training data, and the flags that it overrides. */
void pretrain_inputs_announce(const struct pretrain_inputs *in, const struct pretrain_options *o);

/* Optimizer steps in an epoch; not a whole number. */
double pretrain_inputs_steps_per_epoch(const struct pretrain_inputs *in, const struct pretrain_options *o);

/* STATUS_DATA unless a model with a vocabulary of this hash, at `path`, may be trained on these inputs. */
struct status pretrain_inputs_check_vocab(const struct pretrain_inputs *in, uint64_t vocab_hash,
                                          const char *path);

#endif
