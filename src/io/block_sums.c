#include "io/block_sums.h"

#include "core/hash.h"

size_t block_sums_count(size_t n)
{
    return n / BLOCK_SUMS_BYTES + (n % BLOCK_SUMS_BYTES != 0);
}

void block_sums_end(struct block_sums *b)
{
    if (b->filled > 0) {
        buf_append(&b->crcs, &b->crc, sizeof b->crc);
    }
    b->crc = 0;
    b->filled = 0;
}

void block_sums_add(struct block_sums *b, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n > 0) {
        size_t room = BLOCK_SUMS_BYTES - b->filled, part = n < room ? n : room;
        b->crc = hash_crc32c(b->crc, p, part);
        b->filled += part;
        p += part;
        n -= part;
        if (b->filled == BLOCK_SUMS_BYTES) {
            block_sums_end(b);
        }
    }
}

void block_sums_fini(struct block_sums *b)
{
    buf_fini(&b->crcs);
    *b = (struct block_sums){0};
}
