/* stream: a micro-batch on the model's device: sequences laid end to end, and the model's own fields
 * (core/batch.h); and which rows of the residual stream are here.
 *
 * Peers (dev/peers.h) that have slices of the layers each have all rows of the residual stream or, in
 * sequence parallel, equal parts of them, in their order (Korthikanti et al. 2022, arXiv:2205.05198, section
 * 4.2.2).  What adds to the stream, drops from it or normalises it then works on a peer's own rows; the
 * products that are cut into slices read and sum all rows.  The functions below turn own rows into all rows
 * and back.  Where rows are not divided, or there are no peers, `own` and `all` are the same tensor, and only
 * the sum is left, so layers are written once. */
#ifndef KILN_NN_STREAM_H
#define KILN_NN_STREAM_H

#include "core/batch.h"
#include "dev/exec.h"

/* Arrays of a micro-batch on the device, all i32.  T tokens. */
struct stream {
    tensor ids;        /* [T] */
    tensor positions;  /* [T] */
    tensor row_keys;   /* [T, 2] */
    tensor cu_seqlens; /* [streams + 1], with the tail */
    tensor fields[BATCH_MOST_FIELDS];
    int64_t max_seqlen;
    double n_pairs;    /* pairs of tokens and keys of their sequences; 0 while planning */
    bool divides_rows; /* peers have parts of the residual stream's rows: T is a multiple of their number */

    /* Places in a cache of keys and values (core/batch.h), null without one: [T], [streams + 1], [streams,
     * pages]. */
    tensor slots, cu_keys, pages;
    int64_t max_keys;
};

/* This peer's rows of `all` [T, ...], as a view. */
tensor stream_own(const struct exec *x, const struct stream *s, tensor all);

/* Casts rows of the residual stream to the dtype of activations, into `into`; returns `rows` itself where the
 * dtypes are the same. */
tensor stream_narrow(struct exec *x, tensor into, tensor rows);

/* Gathers all rows, of which each peer has its own, in `room` [T, H], whose dtype is no smaller; `own` may be
 * a view of it. */
tensor stream_gather(struct exec *x, const struct stream *s, tensor own, tensor room);

/* This peer's rows of `all` = their sums over all peers; the other rows then have undefined contents. */
void stream_sum(struct exec *x, const struct stream *s, tensor all);

/* The tensor for all rows, of which this peer keeps its own: `room` [T, H], or `own` where rows are not
 * divided; and the copy of this peer's rows of it to `own`. */
tensor stream_room(const struct exec *x, const struct stream *s, tensor own, tensor room);
void stream_keep_own(struct exec *x, const struct stream *s, tensor own, tensor all);

#endif
