/* step_bench: where the time of a training step, or of answering a batch of questions, goes, beside what the device
 * reaches in the same run. */
#ifndef KILN_TASK_STEP_BENCH_H
#define KILN_TASK_STEP_BENCH_H

#include "watch/ceilings.h"
#include "watch/op_report.h"
#include "nn/bert_model.h"
#include "train/trainer.h"

/* A model to measure on sequences of random words, and what is known of it beforehand. */
struct step_bench {
    struct bert_model bert;
    struct trainer_config config; /* of `bert` once planned */
    struct backend plain;         /* of the ceilings: without what may stand around config.ops */
    struct ceiling_size ceiling_size;
    struct trainer_plan plan;
    int64_t n_sequences, length; /* the longest sequence */
    int64_t min_length;          /* the others are spread evenly from here to the longest; 0: all are full */
    double useful_flops;         /* products of one step over its real tokens and labels */
};

/* Steps as a run takes them: with nothing around the ops, so that they are recorded where the device records, when all
 * is chosen, recorded and warm. */
struct step_latency {
    int64_t n;
    double median_s, p99_s; /* of a step with its end: of answers, logits in the host's memory */
    double
        passes_s; /* of training, median of forward and backward alone, for comparisons with what has no optimizer */
};

/* The fastest step with its ops timed one by one, and the ceilings as high as they were seen between the steps. */
struct step_times {
    double seconds;
    struct op_total totals[OP_WATCH_N_OPS];
    struct op_ceilings ceilings;
    struct step_latency latency;
};

/* Sets limits, plan and useful_flops by the rest. */
struct status step_bench_plan(struct step_bench *b);

/* One micro-batch of the planned sequences of random words; real tokens of it. */
struct status step_bench_make(struct batch_step *step, const struct step_bench *s);
int64_t step_bench_tokens(const struct step_bench *b);

/* Takes n_steps, answers if b->config.training is false, after one that warms up.  Steps and ceilings are measured in
 * turn, so that both meet the same machine.  Then, where work is recorded and of
 * answers, latency is measured over as many and over a second at least. */
struct status step_bench_run(const struct step_bench *b, int64_t n_steps, struct step_times *times);

#endif
