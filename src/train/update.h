/* update: the end of a step over flat buffers: the norm of all gradients, and the optimizer.
 *
 * One rank does all of it, or several share it: each has only the moments of its shard of the elements, and
 * updates that shard (ZeRO, Rajbhandari et al. 2020, arXiv:1910.02054, section 5.1).  Only norms need other
 * shards: ranks gather sums of chunks, and each adds them in the same order, so weights and moments have the
 * bits of one rank.  Gathers are calls between ranks like all others (dist/comm.h): all ranks make them.
 *
 * Where ranks have parts of the model (core/param.h), the norm is that of all parts: each rank puts the sums
 * of its chunks at their places in the complete model, and the ranks add these lists, in which every number
 * comes from one rank.  So the norm has the bits of a rank that has the complete model.  Ranks with slices of
 * the same parameters exchange an optimizer's sums in the same way. */
#ifndef KILN_TRAIN_UPDATE_H
#define KILN_TRAIN_UPDATE_H

#include "core/arena.h"
#include "core/param_shard.h"
#include "dist/mesh.h"
#include "optim/optimizer.h"

struct update {
    const struct optimizer_kind *kind;
    int rank, n_ranks;        /* ranks that share the update */
    int64_t *bounds;          /* [n_ranks + 1] elements at which shards begin, and the end of the last */
    int64_t *chunk_bounds;    /* bounds of the shards, in chunks of all parameters */
    int64_t *cut;             /* [n_ranks + 1] scratch: the bounds of the shards' parts of a bucket */
    struct param_shard shard; /* shard of this rank */
    /* some parameter, of which the optimizer needs sums, is in several shards; the same on all ranks */
    bool cuts;
    struct optim_span *spans; /* [n_spans] spans of the shard; offsets count from its beginning */
    int64_t n_spans;
    /* [n_spans] the spans with matrices after all others (struct optimizer_step) */
    struct optim_span *parted;
    int64_t n_matrices;
    tensor squares, sums; /* sums of all chunks, as in struct optimizer_step */
    tensor scratch;

    /* Places of a part's chunks in the model: chunks [from, from + n) here are chunks [at, at + n) of
     * n_model_chunks, where a parameter's slices come one after the other.  Parameters that all slices have
     * are counted by the first slice only. */
    struct update_run {
        int64_t from, at, n;
    } * runs; /* [n_runs]; NULL: the complete model is here */
    int64_t n_runs, n_model_chunks;
    tensor model_squares; /* f64 [n_model_chunks] */

    /* The optimizer reads sums of all slices of a parameter.  An optimizer that takes matrices asks the
     * peers. */
    bool reads_slices;
    struct optim_span *model_spans; /* [n_spans], which count chunks of the model */
    tensor model_sums;              /* f64 [n_model_chunks, as sums] */
};

/* The shards are n_ranks equal parts of the table's flat buffers, which never end inside a chunk
 * (core/param_shard.h).  Where this rank has a part of the model, `model` is the table of all layers, of the
 * largest slice; else it is empty.  STATUS_MEMORY. */
struct status update_init(struct update *u, const struct optimizer *o, const struct param_table *params,
                          const struct param_table *model, int rank, int n_ranks);
void update_fini(struct update *u);

/* Carves the tensors; `dtype` is that of products. */
void update_carve(struct update *u, struct arena *a, enum dtype dtype);

/* Sets u->cut to the bounds of the shards within elements [from, to), counted from `from`. */
void update_cut(const struct update *u, int64_t from, int64_t to);

/* Gathers the shards of a flat buffer on every rank of m->data that shares the update. */
void update_gather_flat(const struct update *u, const struct mesh *m, struct exec *x, tensor flat);

/* The part of a flat buffer that is this rank's shard. */
tensor update_own(const struct update *u, tensor flat);

/* The part of a parameter that is in this rank's shard, of which `flat` is a buffer; null: none of it. */
tensor update_own_param(const struct update *u, const struct param *p, tensor flat);

/* In the following functions all buffers are those of the shard, and `m` has all ranks of the model: the
 * ranks of m->data share the update, or each does all of it, and the other ranks have the other parts of the
 * model. */

/* norm[0] = the norm of all gradients, or of all weights; `flat` has those of the shard. */
void update_norm(const struct update *u, const struct mesh *m, struct exec *x, tensor flat, tensor norm);

/* root[0] = the square root of the number of zeros among all gradients; `flat` has those of the shard. */
void update_zeros(const struct update *u, const struct mesh *m, struct exec *x, tensor flat, tensor root);

/* Updates the shard, after update_norm.  `norm` and `scalars` are those of struct optimizer_step. */
void update_shard(const struct update *u, const struct mesh *m, struct exec *x, struct optim_buffers own,
                  tensor norm, tensor scalars);

/* Gathers the weights of all shards, after update_shard, on every rank that has all of them in fp32. */
void update_gather(const struct update *u, const struct mesh *m, struct exec *x, tensor master,
                   tensor working);

#endif
