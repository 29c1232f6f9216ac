#include "io/deflate_blocks.h"

#include "core/parallel.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    BLOCKS_PER_PART = 16, /* blocks of 64 KiB: some milliseconds; starting a thread takes much less */
    LEVEL = 1,            /* a higher one takes twice the time, for a few percent */
    WINDOW = 15,          /* the largest, and what readers expect */
    MEMORY = 8            /* zlib's default */
};

/* A row of blocks that are compressed at once. */
struct row {
    const struct deflate_blocks *all;
    int strategy;        /* zlib's */
    int64_t first, n;    /* blocks */
    char *packed;        /* [n_most][room] */
    size_t room, *sizes; /* [n_most]; 0: out of memory */
};

/* Writes block `index` with the first bytes of all integers first. */
static void separate_bytes(const struct deflate_blocks *b, int64_t index, char *to)
{
    size_t at = (size_t)index * b->block_bytes, left = b->n_bytes - at;
    size_t n = b->block_bytes / b->integer_bytes,
           n_there = (left < b->block_bytes ? left : b->block_bytes) / b->integer_bytes;
    const char *from = b->data + at;
    for (size_t k = 0; k < b->integer_bytes; k++) {
        for (size_t i = 0; i < n_there; i++) {
            to[k * n + i] = from[i * b->integer_bytes + k];
        }
        memset(to + k * n + n_there, 0, n - n_there);
    }
}

static size_t compress_block(z_stream *z, const char *from, size_t n, char *to, size_t room)
{
    deflateReset(z);
    z->next_in = (Bytef *)from; /* zlib does not write there */
    z->avail_in = (uInt)n;
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)room;
    int result = deflate(z, Z_FINISH);
    CHECK(result == Z_STREAM_END, "deflate gives %d for %zu bytes", result, n);
    return room - z->avail_out;
}

static void compress_part(void *context, int part, int n_parts)
{
    struct row *r = context;
    const struct deflate_blocks *b = r->all;
    z_stream z = {0};
    char *moved = malloc(b->block_bytes);
    bool has_memory =
        moved != NULL && deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW, MEMORY, r->strategy) == Z_OK;
    for (int64_t i = part; i < r->n; i += n_parts) {
        r->sizes[i] = 0;
        if (has_memory) {
            separate_bytes(b, r->first + i, moved);
            r->sizes[i] = compress_block(&z, moved, b->block_bytes, r->packed + (size_t)i * r->room, r->room);
        }
    }
    deflateEnd(&z);
    free(moved);
}

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory to compress");
}

static struct status pass_on(const struct row *r, deflate_blocks_take *take, void *context)
{
    for (int64_t i = 0; i < r->n; i++) {
        TRY(r->sizes[i] == 0 ? out_of_memory()
                             : take(context, r->first + i, r->packed + (size_t)i * r->room, r->sizes[i]));
    }
    return status_ok();
}

/* The strategy by which the first block becomes small; nearly the same is not worth twice the time.  Without
 * memory either will do. */
static int choose_strategy(struct row *r)
{
    static const int strategies[] = {Z_RLE, Z_DEFAULT_STRATEGY};
    size_t sizes[2];
    r->first = 0;
    r->n = 1;
    for (int i = 0; i < 2; i++) {
        r->strategy = strategies[i];
        compress_part(r, 0, 1);
        sizes[i] = r->sizes[0];
    }
    return strategies[sizes[1] < sizes[0] / 4 * 3];
}

struct status deflate_blocks_run(const struct deflate_blocks *b, deflate_blocks_take *take, void *context)
{
    int64_t n_blocks = (int64_t)((b->n_bytes + b->block_bytes - 1) / b->block_bytes);
    int64_t most = (int64_t)BLOCKS_PER_PART * parallel_n_parts();
    most = most < n_blocks ? most : n_blocks;
    CHECK(b->block_bytes % b->integer_bytes == 0 && b->n_bytes % b->integer_bytes == 0,
          "%zu bytes in blocks of %zu", b->n_bytes, b->block_bytes);
    struct row r = {.all = b, .room = deflateBound(NULL, (uLong)b->block_bytes)};
    r.packed = malloc((size_t)most * r.room + 1);
    r.sizes = calloc((size_t)most + 1, sizeof *r.sizes);
    struct status s = r.packed == NULL || r.sizes == NULL ? out_of_memory() : status_ok();
    if (!failed(s) && n_blocks > 0) {
        r.strategy = choose_strategy(&r);
    }
    for (; r.first < n_blocks && !failed(s); r.first += most) {
        r.n = n_blocks - r.first < most ? n_blocks - r.first : most;
        parallel_run(compress_part, &r);
        s = pass_on(&r, take, context);
    }
    free(r.packed);
    free(r.sizes);
    return s;
}
