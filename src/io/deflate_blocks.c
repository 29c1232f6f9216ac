#include "io/deflate_blocks.h"

#include "core/parallel.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BLOCKS_PER_PART = 16 /* of 64 KiB: some milliseconds, beside which starting a thread is nothing */ };

/* A row of blocks that are compressed at once. */
struct row {
    const struct deflate_blocks *all;
    int64_t first, n;    /* blocks */
    char *packed;        /* [n_most][room] */
    size_t room, *sizes; /* [n_most]; 0: out of memory */
};

/* The size of the compressed block; 0: out of memory. */
static size_t compress_block(const struct deflate_blocks *b, int64_t index, char *packed, size_t room)
{
    size_t at = (size_t)index * b->block_bytes, left = b->n_bytes - at;
    char *filled = left < b->block_bytes ? calloc(1, b->block_bytes) : NULL;
    if (left < b->block_bytes) {
        if (filled == NULL) {
            return 0;
        }
        memcpy(filled, b->data + at, left);
    }
    const char *from = filled == NULL ? b->data + at : filled;
    uLongf n = (uLongf)room;
    int result = compress2((Bytef *)packed, &n, (const Bytef *)from, (uLong)b->block_bytes, b->level);
    CHECK(result == Z_OK || result == Z_MEM_ERROR, "compress2 gives %d", result);
    free(filled);
    return result == Z_OK ? (size_t)n : 0;
}

static void compress_part(void *context, int part, int n_parts)
{
    struct row *r = context;
    for (int64_t i = part; i < r->n; i += n_parts) {
        r->sizes[i] = compress_block(r->all, r->first + i, r->packed + (size_t)i * r->room, r->room);
    }
}

static struct status pass_on(const struct row *r, deflate_blocks_take *take, void *context)
{
    for (int64_t i = 0; i < r->n; i++) {
        if (r->sizes[i] == 0) {
            return status_error(STATUS_MEMORY, "out of memory to compress");
        }
        TRY(take(context, r->first + i, r->packed + (size_t)i * r->room, r->sizes[i]));
    }
    return status_ok();
}

struct status deflate_blocks_run(const struct deflate_blocks *b, deflate_blocks_take *take, void *context)
{
    int64_t n_blocks = (int64_t)((b->n_bytes + b->block_bytes - 1) / b->block_bytes);
    int64_t most = (int64_t)BLOCKS_PER_PART * parallel_n_parts();
    most = most < n_blocks ? most : n_blocks;
    struct row r = {.all = b, .room = compressBound((uLong)b->block_bytes)};
    r.packed = malloc((size_t)most * r.room + 1);
    r.sizes = calloc((size_t)most + 1, sizeof *r.sizes);
    struct status s = r.packed == NULL || r.sizes == NULL
                          ? status_error(STATUS_MEMORY, "out of memory to compress")
                          : status_ok();
    for (; r.first < n_blocks && !failed(s); r.first += most) {
        r.n = n_blocks - r.first < most ? n_blocks - r.first : most;
        parallel_run(compress_part, &r);
        s = pass_on(&r, take, context);
    }
    free(r.packed);
    free(r.sizes);
    return s;
}
