/* gradient_rooms: where a backward leaves its gradients if no rank keeps all of them (ZeRO's second stage,
 * Rajbhandari et al. 2020, arXiv:1910.02054, section 5.2).
 *
 * Buckets of layers (core/param_buckets.h) use one room, a memory as large as the largest of them, one after
 * the other: when the ranks have summed a bucket, and each has taken its part, the next bucket's gradients
 * come there.  The input layer has a room of its own where the heads add to one of its parameters too: its
 * gradients come first, and are complete last.  A parameter's place in the rooms is its offset in a second
 * table, so models need not know. */
#ifndef KILN_TRAIN_GRADIENT_ROOMS_H
#define KILN_TRAIN_GRADIENT_ROOMS_H

#include "core/arena.h"
#include "core/param_buckets.h"
#include "train/update.h"

struct gradient_rooms {
    /* the parameters, with offsets in the rooms; n_elements counts those of the rooms */
    struct param_table places;
    /* spans in the rooms of parameters whose gradients are sums, so they begin at 0, and of frozen ones */
    struct optim_span *cleared;
    struct gradient_room {
        int64_t at, n;                 /* elements [at, at + n) of the rooms are the bucket's, */
        int64_t from;                  /* the bucket's first element in the flat buffers */
        int64_t first_param, n_params; /* the bucket's range in the table */
        int64_t first_cleared, n_cleared;
    } rooms[PARAM_MOST_BUCKETS]; /* [n_rooms] a room for each bucket */
    int n_rooms;
    bool last_is_apart; /* the last bucket has a room of its own */
    tensor flat;        /* the rooms; set by gradient_rooms_carve */
};

/* Finds the rooms of the layers in `buckets`; the layers below them have no gradients.  `tied`: a parameter
 * of the input layer that heads add to, or NULL.  STATUS_MEMORY. */
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

/* Call it before a micro-batch: zeroes the gradients that its backward adds to, in the rooms that it uses
 * first. */
void gradient_rooms_begin(const struct gradient_rooms *r, struct exec *x);

/* Call it when a bucket has been taken out of its room: zeroes the gradients that are added to in the room of
 * the next bucket. */
void gradient_rooms_leave(const struct gradient_rooms *r, struct exec *x, int bucket);

#endif
