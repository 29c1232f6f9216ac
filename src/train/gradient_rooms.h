/* gradient_rooms: where a backward leaves its gradients if no rank keeps all of them (ZeRO's second stage,
 * Rajbhandari et al. 2020, arXiv:1910.02054, section 5.2).
 *
 * Buckets of layers (core/param_buckets.h) take turns in one room as large as the largest of them: when the
 * ranks have summed a bucket, and each has taken its part, the next bucket's gradients come there.  The input
 * layer has a room of its own where the heads add to one of its parameters too: its gradients come first, and
 * are complete last. A parameter's place in the rooms is its offset in a second table, so models need not
 * know. */
#ifndef KILN_TRAIN_GRADIENT_ROOMS_H
#define KILN_TRAIN_GRADIENT_ROOMS_H

#include "core/arena.h"
#include "core/param_buckets.h"
#include "train/update.h"

struct gradient_rooms {
    struct param_table places; /* the parameters, with offsets in the rooms; n_elements: of the rooms */
    /* in the rooms: of parameters whose gradients are sums, so they begin at 0, and frozen ones */
    struct optim_span *cleared;
    struct gradient_room {
        int64_t at, n;                 /* elements [at, at + n) of the rooms are the bucket's, */
        int64_t from;                  /* which begins at this one of the flat buffers */
        int64_t first_param, n_params; /* of the table */
        int64_t first_cleared, n_cleared;
    } rooms[PARAM_MOST_BUCKETS]; /* [n_rooms] by bucket */
    int n_rooms;
    bool last_is_apart; /* the last bucket's room is its own */
    tensor flat;        /* the rooms; set by gradient_rooms_carve */
};

/* Of the layers in `buckets`; those below have no gradients.  `tied`: a parameter of the input layer that
 * heads add to, or NULL. STATUS_MEMORY. */
struct status gradient_rooms_init(struct gradient_rooms *r, const struct param_table *params,
                                  const struct param_buckets *buckets, const char *tied);
void gradient_rooms_fini(struct gradient_rooms *r);
void gradient_rooms_carve(struct gradient_rooms *r, struct arena *a, enum dtype dtype);

/* The gradients of a bucket, in the order of the flat buffers. */
tensor gradient_rooms_view(const struct gradient_rooms *r, int bucket);

/* Sets update->cut to the bounds of the shards within a bucket.  False if this rank's shard has none of
 * it; else *kept is the rank's part in `grad`, the gradients of its shard, and *passing the same elements
 * in the bucket's room. */
bool gradient_rooms_cut(const struct gradient_rooms *r, int bucket, const struct update *update, tensor grad,
                        tensor *kept, tensor *passing);

/* Before a micro-batch: zeroes what its backward adds to, in the rooms that it comes to first. */
void gradient_rooms_begin(const struct gradient_rooms *r, struct exec *x);

/* When a bucket has been taken out of its room: the same for the next. */
void gradient_rooms_leave(const struct gradient_rooms *r, struct exec *x, int bucket);

#endif
