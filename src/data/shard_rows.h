/* shard_rows: sequences written into the arrays of a shard (data/shard_format.h), for who makes shards. */
#ifndef KILN_DATA_SHARD_ROWS_H
#define KILN_DATA_SHARD_ROWS_H

#include "data/shard_format.h"

/* The place of a sequence: a record, its number in the record, and the tokens and predictions before it
 * there. */
struct shard_place {
    int64_t record;
    int slot;
    int64_t at, masked_at;
};

/* Writes the one sequence of `b` into the arrays of a shard in `memory`, which are zero where nothing was
 * written. */
void shard_rows_put(void *memory, const struct shard_shape *shape, const struct shard_place *t,
                    const struct batch *b);

#endif
