/* param_engine: a trainer (train/trainer.h) of parameters whose gradients somebody else computes, for a
 * program with a network of its own (include/kiln/engine.h, docs/decisions/0065_engine.md).  It has a
 * trainer's buffers, sums, update and checkpoints; its model is a table of parameters without layers.
 *
 * The caller adds (+=) the gradients of each micro-batch into trainer.grad, which is 0 when a step
 * begins.  All are on the host.  Collectives are calls between ranks like all others (dist/comm.h): all
 * ranks make them, and the first failure stays. */
#ifndef KILN_TRAIN_PARAM_ENGINE_H
#define KILN_TRAIN_PARAM_ENGINE_H

#include "optim/schedule.h"
#include "train/trainer.h"

struct param_engine_config {
    struct optimizer optimizer;
    struct schedule schedule;
    int64_t n_micro; /* micro-batches of a step, of each rank */
    /* most ranks that give the same bits (train/gradient_tree.h); 0: only the same number of ranks does */
    int reproducible_ranks;
    bool shares; /* each rank has the moments of its shard: ZeRO's first stage */
    bool rounds; /* a copy of the weights in bf16 is kept */
};

struct param_engine {
    struct param_engine_config config;
    struct param_model {
        struct model model;
        struct param_table params; /* owned */
    } of;
    struct trainer trainer;
    const struct comm *world; /* borrowed */
    int64_t n_given;          /* micro-batches of the step that has begun */
    int64_t step;             /* updates so far */
    /* mean of the losses of the latest step, and norm of its mean gradient before clipping */
    double loss, norm;
    double rate; /* learning rate of the latest step */
};

/* Takes the table, also on failure; the weights are 0.  All ranks call it with the same table.
 * STATUS_USAGE: the sums cannot be cut as reproducible_ranks wants; STATUS_MEMORY. */
struct status param_engine_init(struct param_engine *e, struct param_table *params,
                                const struct param_engine_config *config, const struct comm *world);

/* Safe on a zeroed struct. */
void param_engine_fini(struct param_engine *e);

/* Gives all ranks the weights that rank 0 has in trainer.net.master.  STATUS_USAGE, on all ranks, if a
 * rank has another table or another configuration than rank 0. */
struct status param_engine_start(struct param_engine *e);

/* Takes one more micro-batch: its gradients have been added, and its loss is this.  STATUS_USAGE if
 * the step has all of its own already. */
struct status param_engine_take(struct param_engine *e, double loss);

/* Updates the weights if the step has all of its micro-batches, which `*updated` says: by the mean over the
 * micro-batches of all ranks.  STATUS_USAGE without any.  STATUS_NUMERIC, on all ranks: a loss or gradient is
 * not finite, and the first such parameter is named; nothing was updated, and the step begins anew. */
struct status param_engine_step(struct param_engine *e, bool *updated);

/* Rounds the copy of the weights and begins the step anew; call it after the weights were changed by anything
 * but an update. */
void param_engine_restart(struct param_engine *e);

/* The rate of step k, 1 for the first. */
double param_engine_rate(const struct param_engine *e, int64_t k);

/* Writes DIRECTORY/ckpt_STEP, each rank its slices, and returns when it is durable; makes the directory. */
struct status param_engine_save(struct param_engine *e, const char *directory);

/* Resumes from DIRECTORY/ckpt_STEP, or with step -1 from the newest that is complete; *found is false, and
 * nothing changed, if the directory has none.  An error is the engine's last: some of its weights may be
 * those of the file.  Any number of ranks may have written it, at any stage of ZeRO.  A step that has begun
 * is dropped. */
struct status param_engine_load(struct param_engine *e, const char *directory, int64_t step, bool *found);

#endif
