/* stage_batch: sends a micro-batch to the device.
 *
 * Its arrays and the numbers of its step are in one block of device memory, filled by one copy that nobody
 * waits for.  Where work is recorded (dev/queue.h) a batch is rounded up to one of a few sizes, so that few
 * recordings are enough: the tail of [PAD] grows, in pieces of 64 tokens, and sequences without tokens,
 * labels of -1 and rows that nobody reads fill the rest.  Otherwise a batch keeps its size.
 *
 * The caller's batch may change as soon as stage_batch_send returns: its arrays were copied into memory that
 * the device reads (dev/queue.h, queue_stage). */
#ifndef KILN_PASS_STAGE_BATCH_H
#define KILN_PASS_STAGE_BATCH_H

#include "nn/model.h"
#include "ops/ops.h"

/* Numbers that change from step to step, in memory that ops read. */
struct stage_numbers {
    uint64_t dropout_key;
    /* factors of the model's losses: gradients of the logits are multiplied by them */
    double loss_scales[MODEL_MOST_SUMS];
    double scalars[OPTIM_N_SCALARS]; /* scalars of the update that ends the step; zero where there is none */
};

/* The block on the device; NULL pointers while planning. */
struct stage_block {
    void *memory;
    size_t bytes;         /* bytes of the complete block */
    size_t numbers_bytes; /* the numbers come first, at the same place for every batch */
    tensor dropout_key;   /* i64 [1] */
    tensor loss_scales;   /* f64 [MODEL_MOST_SUMS] */
    tensor scalars;       /* f64 [OPTIM_N_SCALARS] */
    struct stream stream;
};

/* The sizes of a batch within the limits on a device: its own, or rounded up.  Arrays are NULL. */
struct batch stage_batch_capacity(const struct device *device, struct batch_limits limits,
                                  const struct batch *batch);

/* A batch of exactly these limits, in its size on the device: the largest of all capacities. */
struct batch stage_batch_largest(const struct device *device, struct batch_limits limits);

/* Carves the block for a batch of this capacity; must be the first carved. */
void stage_batch_carve(struct stage_block *block, struct arena *arena, const struct batch_layout *layout,
                       const struct batch *capacity);

/* Sends a batch and its numbers to a block that was carved for its capacity; without a batch, the numbers
 * alone. */
void stage_batch_send(struct stage_block *block, struct exec *x, const struct batch *batch,
                      const struct stage_numbers *numbers);

#endif
