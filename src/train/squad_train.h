/* squad_train: fine-tuning on answer spans. */
#ifndef KILN_TRAIN_SQUAD_TRAIN_H
#define KILN_TRAIN_SQUAD_TRAIN_H

#include "data/squad_features.h"
#include "train/metrics.h"
#include "train/squad.h"

/* Checkpoints that are kept. */
enum { SQUAD_TRAIN_KEPT = 2 };

/* What fine-tuning came to. */
struct squad_trained {
    int64_t n_steps;   /* of this run */
    int64_t n_skipped; /* of them, since their gradients overflowed */
    double seconds;
    double sequences_per_second; /* after throughput_warmup_steps */
    double final_loss;           /* mean of the last log_freq steps */
};

/* Trains `t`, whose weights are loaded, on the features; n_examples sets the length of the schedule, as in
 * the replaced script.  Saves checkpoints and resumes as the options say. */
struct status squad_train(struct trainer *t, const struct squad_features *features, int64_t n_examples,
                          const struct tokenizer *tokenizer, const struct squad_options *o,
                          struct metrics *log, struct squad_trained *result);

/* Limits of the batches that squad_train will make, for planning. */
struct status squad_train_limits(const struct squad_features *features, const struct squad_options *o,
                                 struct batch_limits *limits);

#endif
