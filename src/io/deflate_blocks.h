/* deflate_blocks: equal blocks of an array, each compressed by itself (zlib's format, RFC 1950), on all cores.
 *
 * The rule: what a block becomes depends on its bytes and on the level alone, not on the number of threads. */
#ifndef KILN_IO_DEFLATE_BLOCKS_H
#define KILN_IO_DEFLATE_BLOCKS_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct deflate_blocks {
    const char *data; /* [n_bytes], borrowed */
    size_t n_bytes;
    size_t block_bytes; /* the last block is filled up with zeros */
    int level;          /* zlib's, 1 to 9 */
};

/* Gets block `index`, compressed; `packed` is borrowed until it returns. */
typedef struct status deflate_blocks_take(void *context, int64_t index, const void *packed, size_t n);

/* Compresses all blocks, some at a time, and calls `take` for each, in order, in the calling thread, until it fails.  STATUS_MEMORY. */
struct status deflate_blocks_run(const struct deflate_blocks *b, deflate_blocks_take *take, void *context);

#endif
