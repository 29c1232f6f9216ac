/* stage_batch: how a micro-batch gets to the device.
 *
 * Its arrays and the numbers of its step lie side by side in one block of device memory, which is filled by one
 * copy that nobody waits for.  Where work is recorded (dev/queue.h) a batch is rounded up to few sizes, so that
 * few recordings serve all: the tail of [PAD] grows, in pieces of 64 tokens, and sequences without tokens,
 * labels of -1 and rows that nobody reads fill the rest.  Elsewhere a batch keeps its size. */
#ifndef KILN_TRAIN_STAGE_BATCH_H
#define KILN_TRAIN_STAGE_BATCH_H

#include "core/arena.h"
#include "data/bert_batch.h"
#include "nn/bert_metrics.h"
#include "nn/bert_stream.h"
#include "optim/optimizer.h"

/* Numbers that change from step to step and that ops read where they compute. */
struct stage_numbers {
    uint64_t dropout_key;
    double loss_scales[BERT_N_LOSSES]; /* gradients of the logits are multiplied by them */
    double scalars[OPTIM_N_SCALARS];   /* of the update that ends the step; zero where there is none */
};

/* The block on the device; NULL pointers while planning. */
struct stage_block {
    void *memory;
    size_t bytes;         /* of all of it */
    size_t numbers_bytes; /* the numbers come first, at the same place for every batch */
    tensor dropout_key;   /* i64 [1] */
    tensor loss_scales;   /* f64 [BERT_N_LOSSES] */
    tensor scalars;       /* f64 [OPTIM_N_SCALARS] */
    struct bert_stream stream;
};

/* The sizes that a batch within the limits takes on a device: its own, or rounded up.  Arrays are NULL. */
struct bert_batch stage_batch_capacity(const struct device *device, struct bert_batch_limits limits,
                                       const struct bert_batch *batch);

/* A batch of exactly these limits, as it takes place on the device: the largest of all capacities. */
struct bert_batch stage_batch_largest(const struct device *device, struct bert_batch_limits limits);

/* Carves the block, first of all, for a batch of this capacity. */
void stage_batch_carve(struct stage_block *block, struct arena *arena, const struct bert_batch *capacity);

/* Sends a batch and its numbers to a block that was carved for its capacity; without a batch, the numbers
 * alone. */
void stage_batch_send(struct stage_block *block, struct exec *x, const struct bert_batch *batch,
                      const struct stage_numbers *numbers);

#endif
