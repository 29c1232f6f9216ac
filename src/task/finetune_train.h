/* finetune_train: training a head on examples, whatever they are of. */
#ifndef KILN_TASK_FINETUNE_TRAIN_H
#define KILN_TASK_FINETUNE_TRAIN_H

#include "data/example_batches.h"
#include "text/tokenizer.h"
#include "task/finetune_options.h"
#include "report/metrics.h"

/* Checkpoints that are kept. */
enum { FINETUNE_TRAIN_KEPT = 2 };

/* What is trained on or predicted. */
struct finetune_data {
    const char *task;             /* for the logs: "question answering" */
    const char *unit;             /* of what n_examples counts: "questions" */
    int64_t n_examples;           /* in the file; a long one may be several of the source */
    bool counts_examples;         /* the schedule is as long as if there were n_examples in whole batches */
    struct example_source source; /* borrowed */
};

/* What fine-tuning came to. */
struct finetune_trained {
    int64_t n_steps;   /* of this run */
    int64_t n_skipped; /* of them, since their gradients overflowed */
    double seconds;
    double sequences_per_second; /* after throughput_warmup_steps */
    double final_loss;           /* mean of the last log_freq steps */
};

/* Trains `t`, whose weights are loaded.  Saves checkpoints and resumes as the options say. */
struct status finetune_train(struct trainer *t, const struct finetune_data *data,
                             const struct tokenizer *tokenizer, const struct finetune_options *o,
                             struct metrics *log, struct finetune_trained *result);

/* Limits of the batches that finetune_train will make, for planning, and the steps of a whole run. */
struct status finetune_train_limits(const struct finetune_data *data, const struct finetune_options *o,
                                    struct batch_limits *limits);
int64_t finetune_train_steps(const struct finetune_data *data, const struct finetune_options *o);

#endif
