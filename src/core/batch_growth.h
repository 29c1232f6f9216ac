/* batch_growth: the samples of each step of a run whose batches grow in steps of samples: what Megatron-LM
 * calls --rampup-batch-size START INCREMENT SAMPLES.
 *
 * The rule: the batch of a step and the samples before it follow from the step's number alone, so that any
 * step can be made directly.  Source: megatron/microbatches.py of Megatron-LM, whose arithmetic in fp64
 * this is. */
#ifndef KILN_CORE_BATCH_GROWTH_H
#define KILN_CORE_BATCH_GROWTH_H

#include <stdint.h>

/* While at most n_samples were taken, a batch has start + increment floor(taken / (n_samples / n)) samples,
 * with n = (batch - start) / increment, an integer; later, `batch`.  n_samples 0: always `batch`.  batch 0:
 * nothing is given. */
struct batch_growth {
    int64_t start, increment, n_samples, batch;
};

struct batch_growth_step {
    int64_t before; /* samples of the steps before it */
    int64_t batch;  /* samples of this step */
};

/* Step `step`, from 1. */
struct batch_growth_step batch_growth_at(const struct batch_growth *g, int64_t step);

/* The number of complete steps that n samples make. */
int64_t batch_growth_steps(const struct batch_growth *g, int64_t n);

#endif
