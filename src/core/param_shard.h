/* param_shard: which elements of a flat buffer each rank owns, where several share the work on them.
 *
 * Shards lie side by side, in the order of ranks, and cover the buffer.  They begin at multiples of
 * PARAM_ALIGNMENT and cut no chunk of a parameter, nor a parameter that no shard may cut.  Chunks are
 * PARAM_ALIGNMENT elements, counted from the parameter's first, and the last may be shorter: ordered
 * reductions sum each chunk first.  So a sum has the same bits for any distribution of the chunks. */
#ifndef KILN_CORE_PARAM_SHARD_H
#define KILN_CORE_PARAM_SHARD_H

#include "core/param.h"

/* Elements [begin, end). */
struct param_shard {
    int64_t begin, end;
};

/* The shard of rank `rank` of n_ranks, as even as chunks and uncut parameters allow; a small table has empty
 * ones. */
struct param_shard param_shard_of(const struct param_table *t, int rank, int n_ranks);

/* The part of a parameter that lies in a shard, as elements of the flat buffer; empty: begin == end. */
struct param_shard param_shard_cut(const struct param *p, struct param_shard shard);

/* Whether some parameter has elements on both sides of this one's beginning, so that a shard that begins
 * there cuts it. */
bool param_is_cut_at(const struct param_table *t, int64_t element);

/* Chunks of a parameter of so many elements. */
int64_t param_chunks(int64_t elements);

/* Chunks of the parameters before this element, where a shard may begin; frozen ones have none. */
int64_t param_chunks_before(const struct param_table *t, int64_t element);

#endif
