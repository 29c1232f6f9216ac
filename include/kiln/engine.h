/* engine: trains a network of your own, of any kind, on one or several processes, as a DeepSpeed JSON file
 * says.
 *
 * You compute losses and gradients; the engine adds the gradients of all micro-batches and ranks, clips,
 * updates by the optimizer, with or without ZeRO's first stage, follows the schedule of the rate, and saves:
 *
 *     kiln_engine_open(&engine, "ds.json", parameters, n, NULL);
 *     for each of kiln_engine_info(engine).steps micro-batches:
 *         loss = ...                                      by kiln_engine_weights(engine, i)
 *         kiln_engine_gradient(engine, i)[k] += ...       of this loss, for every parameter i
 *         kiln_engine_backward(engine, loss);
 *         kiln_engine_step(engine, &updated);             true at the end of gradient_accumulation_steps
 *     kiln_engine_save(engine, "out");
 *     kiln_engine_close(engine);
 *
 * Ranks.  Started by `mpirun -n N` of Open MPI or `srun --mpi=pmix`, N processes train together; started
 * alone, one does.  All ranks make the same calls of this header, with the same parameters and JSON; each
 * computes its own micro-batches, and all have the same weights afterwards.  If one fails, or ends, the calls
 * of the others fail too and say which, at the latest after KILN_COMM_TIMEOUT seconds (600): a rank that
 * cannot go on closes its engine, or ends.
 *
 * Bits.  The same ranks give the same bits.  With options.reproducible_ranks N, so do 1, 2, 4 ... N ranks, at
 * stage 0 and 1, if train_batch_size and train_micro_batch_size_per_gpu are the same, and if micro-batch i of
 * the step on rank r (from 0) is number r * gradient_accumulation_steps + i of the global batch and depends
 * on that number alone.
 *
 * Errors are those of kiln.h.  Those of arguments (KILN_USAGE) and KILN_NUMERIC change nothing; after any
 * other the engine can only be closed: later calls return the same error.
 *
 * Threads.  An engine belongs to one thread at a time.  Your own threads may write gradients and read
 * weights, in any way, between two calls.  Of several ranks, one engine can be open in a process, and none
 * again after it was closed; MPI is opened with it, and closed. */
#ifndef KILN_ENGINE_H
#define KILN_ENGINE_H

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kiln_engine;

/* One tensor that is trained. */
struct kiln_parameter {
    const char *name; /* in checkpoints, unique: 1 to 95 letters, digits, '.', '_', '-' or '/' */
    int n_dims;       /* 1 or 2; fold more dims into these */
    /* [slow, fast]; each from 1, at most 2^40 elements together. Norms of LAMB and LANS are of whole
     * parameters */
    int64_t dims[2];
    bool decay; /* the file's weight_decay applies to it: usual for matrices, not for biases and scales */
    const float *values; /* [elements] to begin with, copied; those of rank 0 count.  NULL: zeros */
};

struct kiln_engine_options {
    size_t size;
    /* see "Bits"; a power of two, at most 1024, which the number of ranks divides, and which divides the
     * micro-batches of a step over all ranks. It takes log2(reproducible_ranks / ranks) more buffers of
     * gradients. 0: off */
    int reproducible_ranks;
};

/* 0. */
KILN_OPTIONS(engine)

/* Finds the other ranks, reads the file, allocates all memory and gives all ranks the values of rank 0.  Call
 * it before your program starts threads, if it may have several ranks.  `parameters` [n_parameters], 1 to
 * 10,000, is not kept.
 *
 * Of the file count: train_batch_size, train_micro_batch_size_per_gpu, gradient_accumulation_steps (each
 * found from the others), gradient_clipping (0: none), optimizer (Adam, AdamW, Lamb, lans, ...: type, lr,
 * betas, eps, weight_decay, adam_w_mode, min_coeff, max_coeff), scheduler (WarmupLR, WarmupDecayLR; without
 * one the rate stays lr), zero_optimization.stage 0 or 1, bf16.enabled.  Keys about transport, buckets,
 * offload and logs are accepted and do nothing.
 *
 * KILN_USAGE: a parameter; reproducible_ranks; a rank has other parameters or another file than rank 0.
 * KILN_DATA: the file is missing or wrong, and the message names the key.  KILN_UNAVAILABLE: a key asks for
 * what kiln has not, such as stage 2 or fp16; or there are several ranks, but no MPI.  KILN_MEMORY. */
struct kiln_status kiln_engine_open(struct kiln_engine **engine, const char *deepspeed_config,
                                    const struct kiln_parameter *parameters, int n_parameters,
                                    const struct kiln_engine_options *options);

/* Leaves the other ranks and frees everything.  The others are told if a call failed here. */
void kiln_engine_close(struct kiln_engine *engine);

struct kiln_engine_info {
    int rank, n_ranks;                   /* this process among all */
    int local_rank, n_local;             /* and among those of its machine */
    int64_t micro_batch_size;            /* samples of one kiln_engine_backward */
    int64_t gradient_accumulation_steps; /* number of these on each rank in a step */
    int64_t train_batch_size;            /* samples of a step, of all ranks */
    int zero_stage;                      /* 0 or 1 */
    int64_t step;                        /* updates so far, those before a checkpoint included */
    double learning_rate;                /* rate of the next update */
    /* results of the latest step: the mean of its losses; the norm of the mean gradient, before clipping.
     * The same on all ranks; 0 before the first */
    double loss, gradient_norm;
    size_t memory_bytes; /* bytes that the engine has allocated on this rank */
};

/* Zeros for NULL. */
struct kiln_engine_info kiln_engine_info(const struct kiln_engine *engine);

/* Parameter i, counted as in kiln_engine_open, [elements]: its values in fp32, which only the engine changes,
 * in kiln_engine_step and kiln_engine_load.  The address is the same until the engine is closed.  NULL: no
 * such parameter. */
const float *kiln_engine_weights(const struct kiln_engine *engine, int i);

/* The parameter rounded to bf16, the upper half of an fp32 each; NULL without bf16.enabled. */
const uint16_t *kiln_engine_weights_bf16(const struct kiln_engine *engine, int i);

/* The address at which to add (+=) the gradient of the loss of this micro-batch, [elements], fp32: 0 when a
 * step begins. The address is the same until the engine is closed. NULL: no such parameter. */
float *kiln_engine_gradient(struct kiln_engine *engine, int i);

/* Says that the gradients of one more micro-batch have been added, and its loss, the mean over its samples:
 * the engine takes the mean of the losses and gradients of a step.  KILN_USAGE: the step has all of its
 * micro-batches, and kiln_engine_step must end it. */
struct kiln_status kiln_engine_backward(struct kiln_engine *engine, double loss);

/* Call it after each kiln_engine_backward.  If this was the last of gradient_accumulation_steps, sums over
 * all ranks, clips and updates; *updated, unless it is NULL, says whether it did.  KILN_USAGE: no backward
 * since the last step.  KILN_NUMERIC, on all ranks: a gradient, which the message names, or the loss is not
 * finite; weights and moments are as before, and a new step begins. */
struct kiln_status kiln_engine_step(struct kiln_engine *engine, bool *updated);

/* Writes DIRECTORY/ckpt_STEP: weights, moments and step, each rank its part, all in a file system that all
 * see.  Durable on return; whole, or not there.  A step that has begun is not in it.  KILN_IO: the disk; the
 * same on all ranks, and the engine may go on. */
struct kiln_status kiln_engine_save(struct kiln_engine *engine, const char *directory);

/* Goes on from the newest checkpoint of the directory that is whole, which any number of ranks may have
 * written at stage 0 or 1.  *found is false, and nothing changed, if there is none.  KILN_NO_CHECKPOINT:
 * there are some, but none is whole.  KILN_DATA: it has other parameters, or is not an engine's. */
struct kiln_status kiln_engine_load(struct kiln_engine *engine, const char *directory, bool *found);

#ifdef __cplusplus
}
#endif

#endif
