/* block_sums: a CRC-32C of every MiB of a file, so that damage can be located. */
#ifndef KILN_IO_BLOCK_SUMS_H
#define KILN_IO_BLOCK_SUMS_H

#include "core/buf.h"

#include <stdint.h>

enum { BLOCK_SUMS_BYTES = 1 << 20 };

struct block_sums {
    struct buf crcs; /* u32 each: of the complete blocks, and after block_sums_end also of the last one */
    uint32_t crc;    /* of the block that is being filled */
    size_t filled;   /* its bytes */
};

/* Adds the next bytes of the file.  Failure is sticky: buf_status of `crcs`. */
void block_sums_add(struct block_sums *b, const void *bytes, size_t n);

/* Closes the last block. */
void block_sums_end(struct block_sums *b);
void block_sums_fini(struct block_sums *b);

/* Blocks of a file of n bytes. */
size_t block_sums_count(size_t n);

#endif
