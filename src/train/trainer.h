/* trainer: a network, its gradients and its optimizer in one planned block of memory, and one optimizer step
 * that the ranks of a mesh (dist/mesh.h) take together: slices of the layers, stages of a pipeline and
 * replicas, each with its own micro-batches of the global batch.  One rank is a mesh, too, whose groups do
 * nothing.
 *
 * Who waits: everything before trainer_update is queued, so the host knows neither a loss nor a norm until it
 * returns.  The device reads the norm by itself to clip.  Several ranks also meet in each of their sums.
 *
 * Failures: the first one stays in net.x.status, the ops after it do nothing, and trainer_update returns it.
 * A rank that failed still makes every call between ranks (dist/comm.h), or the others would wait for it. */
#ifndef KILN_TRAIN_TRAINER_H
#define KILN_TRAIN_TRAINER_H

#include "dist/comm_device.h"
#include "dist/comm_emulated.h"
#include "dist/comm_peers.h"
#include "optim/optimizer.h"
#include "optim/param_rates.h"
#include "pass/network.h"
#include "train/gradient_rooms.h"
#include "train/gradient_tree.h"
#include "train/loss_scale.h"
#include "train/trainer_ranks.h"
#include "train/trainer_result.h"
#include "train/update.h"

struct trainer_config {
    /* network of this rank; its limits hold for every micro-batch, evaluation included; its part of the model
     * follows from `ranks` */
    struct network_config net;
    struct trainer_ranks ranks; /* ranks that train together, and which of them this is */
    struct optimizer optimizer;
    struct param_rates rates;
    /* losses are the mean of each micro-batch's mean, as in the replaced scripts; else they are divided by
     * the counts of the global batch */
    bool mean_of_micro_batches;
    /* elements in one sum of gradients (core/param_buckets.h); 0: the default */
    int64_t bucket_elements;
    bool saving;                         /* checkpoints will be written (task/save_run.h) */
    uint64_t seed;                       /* seed of the initial weights and of dropout */
    struct loss_scale_rule scale_rule;   /* rule of the loss scale, fp16 only */
    bool counts_zeros, measures_weights; /* steps set n_zeros and weight_norm of trainer_result */
};

/* Places of the numbers of a step's result on the device.  The first TRAINER_N_FINITE must be finite for an
 * update; TRAINER_ZEROS has the root of the number of zeros. */
enum {
    TRAINER_NORM,
    TRAINER_SUMS,
    TRAINER_N_FINITE = TRAINER_SUMS + MODEL_MOST_SUMS,
    TRAINER_ZEROS = TRAINER_N_FINITE,
    TRAINER_WEIGHT_NORM,
    TRAINER_N_RESULTS,
};

/* The memory and work of a trainer, known before anything is allocated. */
struct trainer_plan {
    /* plan of the network; its total_bytes are those of the device: all here but saving_bytes */
    struct network_plan net;
    int64_t n_model_params;   /* parameters of the complete model; net.n_params of them are here */
    int64_t n_frozen;         /* parameters of net.n_params that no update touches */
    size_t gradient_bytes;    /* gradients and the sums of blocks */
    size_t optimizer_bytes;   /* both moments, sums for norms, and histories of factors in fp8 */
    size_t saving_bytes;      /* copy of master and moments for a save: host memory, not the trainer's */
    size_t total_bytes;       /* bytes of everything above */
    double micro_flops;       /* forward and backward of the largest micro-batch */
    double micro_bytes;       /* moved by the micro-batch's ops, each tensor once */
    double peer_bytes;        /* bytes that a micro-batch sends to the other slices (dev/peers.h) */
    double update_peer_bytes; /* bytes that an update sends to them, once a step */
    /* bytes of the sums of chunks that an update adds up over the ranks of all parts of the model, and over
     * those with the slices of its layers alone (train/update.h); 0: the rank has the complete model */
    double part_sum_bytes, slice_sum_bytes;
};

/* Asked before each micro-batch of a step; a step without micro-batches asks once, with n 0. */
struct micro_hook {
    /* n_done of the rank's n micro-batches are queued; so_far is the state of its exec.  *abandons, which
     * all ranks must set before the same round of micro-batches, ends the step without an update; a
     * failure does, too, and becomes the exec's. */
    struct status (*next)(void *self, struct status so_far, int64_t n_done, int64_t n, bool *abandons);
    void *self;
};

/* The forward and backward of one micro-batch. */
struct trainer_pass {
    const struct batch *batch;
    int64_t step;
    bool first, last; /* first, last pass of its step */
    double loss_scale;
};

/* Looks at the passes of steps: `begin` comes before one, with its batch carved and on the device, `end`
 * after it.  After the last pass of a step `grad` holds the step's gradients. */
struct pass_hook {
    void (*begin)(void *self, const struct trainer_pass *pass);
    void (*end)(void *self);
    void *self;
};

struct trainer {
    struct trainer_config config;
    struct trainer_plan plan;
    struct network net; /* weights, passes, and the memory of all of this */
    /* flat buffers in the order of net.params, fp32 (fp64 in tests of fp64): grad has [n_elements] of the
     * network, or those of the shard where ranks share gradients; the moments have those of the shard */
    tensor grad, exp_avg, exp_avg_sq;
    /* gradients of a micro-batch, a bucket at a time, where ranks share gradients */
    struct gradient_rooms rooms;
    /* [n] the gradient of model->tied from heads on another rank; null where none comes */
    tensor tied_part;
    struct gradient_tree tree; /* sums of blocks of micro-batches */
    tensor results;            /* f64 [TRAINER_N_RESULTS] the numbers of a step's result: */
    tensor norm, sums; /* views of it: [1] the norm of the gradients, [MODEL_MOST_SUMS] the model's sums */
    struct loss_scale loss_scale;
    void *grads; /* the model's views */
    /* update of this rank's shard of the buffers; the moments are those of this shard */
    struct update update;
    /* [ranks + 1] elements at which the shards' vectors begin in net.vectors; NULL where the master is
     * complete */
    int64_t *vector_bounds;
    /* [n_added] parameters whose gradients are sums, so they begin at 0, and frozen ones */
    struct optim_span *added;
    int64_t n_added;

    /* The mesh of the ranks, for tensors of the device; until trainer_join the other ranks are emulated. */
    struct mesh mesh;
    struct comm_emulated absent;
    struct comm_device device_ranks; /* communicator of the mesh's ranks */
    struct comm_peers peers;         /* mesh.tensor, as layers see it */
    struct mesh_sent sent;           /* bytes sent by this rank in its steps so far, without evaluations */

    int64_t step; /* the running step */
    /* numbers of the step: dropout key, scalars of the update, loss factors */
    struct stage_numbers numbers;

    /* For tests, instead of the sums over replicas: called when the gradients of a bucket of
     * net.stage.buckets are those of the complete step, like stage.gradient_done in its last micro-batch.
     * NULL: the sums over replicas. */
    void (*gradient_done)(void *context, int bucket);
    void *gradient_done_context;

    const struct pass_hook *pass_hook;   /* NULL: nobody looks.  Borrowed */
    const struct micro_hook *micro_hook; /* NULL: nobody asks.  Borrowed */
    struct trainer_turn {
        int64_t n, n_done; /* micro-batches of this rank in the running step */
        bool abandoned;    /* micro_hook has ended it */
        int n_summed;      /* buckets whose gradients replicas have summed, where they share gradients */
        int64_t round;     /* round of micro-batches, one on each rank, that is running */
        bool is_empty;     /* this rank has no micro-batch in the round */
    } turn;
};

/* Validates the configuration by running a complete micro-step on the plan table; allocates nothing that
 * stays. */
struct status trainer_plan(struct trainer_plan *plan, const struct trainer_config *config);

/* Passes the ops of one micro-batch to `ops`, a table that computes nothing (ops/roofline.h), in the sizes
 * that the batch has on config->device: forward and, for training, loss and backward, as a recording; with
 * `whole_step` also the rest of trainer_step. */
struct status trainer_count(const struct trainer_config *config, const struct ops *ops,
                            const struct batch *batch, bool whole_step);

/* Allocates what is planned.  For training the weights are initialised from the seed, else they are zero. */
struct status trainer_init(struct trainer *t, const struct trainer_config *config);

/* Leaves the other ranks and frees everything.  Safe on a zeroed struct. */
void trainer_fini(struct trainer *t);

/* Replaces the weights by random ones, drawn from the seed. */
struct status trainer_initialize(struct trainer *t);

/* Joins the other ranks, which `world` is of, on the host; all ranks call it at once.  `nccl`: where each
 * has a GPU (dist/comm_device.h); the order of sums is set here.  NULL: no GPU. */
struct status trainer_join(struct trainer *t, const struct comm *world, const struct comm_nccl_config *nccl);

/* Leaves the other ranks again, which all ranks do; trainer_fini does it too. */
void trainer_leave(struct trainer *t);

/* Whether ranks share gradients, so that `grad` has those of this one's shard. */
static inline bool trainer_shares_gradients(const struct trainer *t)
{
    return trainer_ranks_share_gradients(&t->config.ranks);
}

/* One optimizer step over `batch`, the micro-batches of this rank's replica of the model with the counts
 * of the global batch (batch_step_part): gradients, clipping, update number `update` (1 for the first of a
 * phase) at rate lr.  `step` counts over all phases and addresses the dropout masks.  It queues everything
 * and then waits once, for the result, which is that of the global batch on every rank; so is an error
 * before the norm of the gradients is known, and other ranks find a later one when they make their next
 * call.  STATUS_NUMERIC names the first tensor that is not finite; the weights are then unchanged.  In
 * fp16 the loss scale is lowered and the step skipped instead, until the scale can be no lower.  A step
 * that the micro_hook ends leaves weights, moments and all else that the next step reads as they were
 * (result->abandoned). */
struct status trainer_step(struct trainer *t, const struct batch_step *batch, int64_t step, int64_t update,
                           double lr, struct trainer_result *result);

/* The parts of trainer_step, for tests.  First the numbers of the step, which the losses of all micro-batches
 * need; then its gradients, summed over micro-batches and ranks, queued; and its update with the wait for its
 * result. */
void trainer_begin_step(struct trainer *t, int64_t step, int64_t update, double lr);
void trainer_queue_gradients(struct trainer *t, const struct batch_step *batch);
struct status trainer_update(struct trainer *t, const struct batch_step *batch, int64_t step,
                             struct trainer_result *result);

/* The first two of them, and the norm: gradients only, left in t->grad, times the loss scale. */
struct status trainer_gradients(struct trainer *t, const struct batch_step *batch, int64_t step,
                                struct trainer_result *result);

/* Losses and accuracies without dropout and without learning, of the batches of this rank's replica: all
 * ranks of it have them. */
struct status trainer_evaluate(struct trainer *t, const struct batch_step *batch,
                               struct trainer_result *result);

/* The parts of trainer_evaluate, for batches that are not all there at once; `counts` has their n_labels. */
void trainer_evaluate_begin(struct trainer *t);
void trainer_evaluate_batch(struct trainer *t, const struct batch *batch);
struct status trainer_evaluate_end(struct trainer *t, const struct batch_step *counts,
                                   struct trainer_result *result);

/* The elements of the flat buffers that this rank writes into checkpoints. */
struct param_shard trainer_saved(const struct trainer *t);

/* Runs forward, loss and backward of the first micro-batch only, for measurements; adds to the gradients. */
struct status trainer_passes(struct trainer *t, const struct batch_step *batch, int64_t step);

#endif
