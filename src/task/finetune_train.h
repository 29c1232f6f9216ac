/* finetune_train: training a head on examples of any kind. */
#ifndef KILN_TASK_FINETUNE_TRAIN_H
#define KILN_TASK_FINETUNE_TRAIN_H

#include "data/example_batches.h"
#include "text/tokenizer.h"
#include "task/finetune_options.h"
#include "report/metrics.h"

/* The number of checkpoints to keep. */
enum { FINETUNE_TRAIN_KEPT = 2 };

/* Data to train on or to predict. */
struct finetune_data {
    const char *task;             /* for the logs: "question answering" */
    const char *unit;             /* the unit of n_examples: "questions" */
    int64_t n_examples;           /* in the file; a long one may become several in the source */
    bool counts_examples;         /* the schedule's length is computed from n_examples, in whole batches */
    struct example_source source; /* borrowed */
};

/* The result of fine-tuning. */
struct finetune_trained {
    int64_t n_steps;   /* of this run */
    int64_t n_skipped; /* of them, since their gradients overflowed */
    double seconds;
    double sequences_per_second; /* after throughput_warmup_steps */
    double final_loss;           /* mean of the last log_freq steps */
    /* of the last evaluation or, with early stopping, of the best; NAN without eval_file */
    double heldout_loss;
};

/* Trains `t`, whose weights are loaded; with early stopping the best it had are then its weights.  `heldout`
 * is without examples unless there is an eval_file.  Saves checkpoints and resumes as the options say. */
struct status finetune_train(struct trainer *t, const struct finetune_data *data,
                             const struct finetune_data *heldout, const struct tokenizer *tokenizer,
                             const struct finetune_options *o, struct metrics *log,
                             struct finetune_trained *result);

/* Limits of the batches that finetune_train will make, for planning. */
struct status finetune_train_limits(const struct finetune_data *data, const struct finetune_options *o,
                                    struct batch_limits *limits);

/* Host memory of this rank's batches of a step, and of one of held-out text; no batch is larger than
 * `limits`. */
size_t finetune_train_batch_bytes(const struct finetune_options *o, const struct batch_layout *layout,
                                  struct batch_limits limits);

/* Of a whole run. */
int64_t finetune_train_steps(const struct finetune_data *data, const struct finetune_options *o);

#endif
