/* step_bench: the parts of the time of a training step, or of answering a batch of questions, compared with
 * the device's peaks in the same run. */
#ifndef KILN_TASK_STEP_BENCH_H
#define KILN_TASK_STEP_BENCH_H

#include "ops/machines.h"
#include "ops/roofline.h"
#include "watch/ceilings.h"
#include "watch/op_report.h"
#include "train/trainer.h"

/* A model to measure on sequences of random tokens, and its planned work. */
struct step_bench {
    /* configuration with its model, which the caller owns; limits are set by step_bench_plan */
    struct trainer_config config;
    struct backend plain; /* backend for the ceilings, without the wrappers around config.ops */
    struct ceiling_size ceiling_size;
    struct trainer_plan plan;
    int64_t n_sequences, length; /* the longest sequence */
    int64_t min_length;          /* lengths are spread evenly from here to `length`; 0: all are `length` */
    int64_t n_masked;            /* masked words of a sequence of `length`; 0: 15 % of its tokens */
    double useful_flops;         /* products of one step over its real tokens and labels */
};

/* Steps as in a run: without wrappers around the ops, so that a device that records replays them, once all
 * algorithms are chosen and all is recorded and warm. */
struct step_latency {
    int64_t n;
    /* seconds of a step until its end; for answers, until the logits are in host memory */
    double median_s, p99_s;
    /* median seconds of forward and backward only, to compare with benchmarks without an optimizer; 0 for
     * answers */
    double passes_s;
};

/* The fastest step with its ops timed one by one, and the highest ceilings measured between the steps. */
struct step_times {
    double seconds;
    struct op_total totals[OP_WATCH_N_OPS];
    struct op_ceilings ceilings;
    struct step_latency latency;
};

/* Sets limits, plan and useful_flops from the other fields. */
struct status step_bench_plan(struct step_bench *b);

/* Fills one micro-batch with the planned sequences of random tokens; returns the number of real tokens. */
struct status step_bench_make(struct batch_step *step, const struct step_bench *s);
int64_t step_bench_tokens(const struct step_bench *b);

/* Runs n_steps training steps, or batches of answers if b->config.net.learns is false, after one that warms
 * up. Steps and ceilings are measured in turn, so that both see the same state of the machine.  Then, if work
 * is recorded, or for answers, latency is measured over the same number of steps and at least a second. */
struct status step_bench_run(const struct step_bench *b, int64_t n_steps, struct step_times *times);

/* The predicted time of a step on a machine that is not here.  Nothing is measured. */
struct step_forecast {
    struct roofline ops;     /* ops of a complete step, or of a forward without training, before `reached` */
    double step_s, passes_s; /* seconds of the step, and of forward and backward only */
    struct op_ceilings ceilings;
};

/* Predicts a bench that was planned for machine_device, by the machine's rates; f must not move while f->ops
 * is used.  STATUS_USAGE: the rate of products in the bench's precision is not known. */
struct status step_forecast_run(struct step_forecast *f, const struct step_bench *b,
                                const struct machine_rates *rates);

#endif
