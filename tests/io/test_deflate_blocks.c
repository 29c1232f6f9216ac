/* Blocks unpack to what they were, in order, whatever the number of threads; the last one is filled up with
 * zeros. */
#include "io/deflate_blocks.h"
#include "test.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BLOCK = 1000, MOST = 200 };

struct taken {
    int64_t n, fails_at;
    unsigned char packed[MOST][2 * BLOCK];
    size_t sizes[MOST];
};

static struct status take(void *context, int64_t index, const void *packed, size_t n)
{
    struct taken *t = context;
    EXPECT(index == t->n && n <= sizeof t->packed[0], "block %lld after %lld", (long long)index,
           (long long)t->n);
    if (index == t->fails_at) {
        return status_error(STATUS_IO, "no more");
    }
    memcpy(t->packed[index], packed, n);
    t->sizes[t->n++] = n;
    return status_ok();
}

static void expect_unpacked(const struct taken *t, const char *data, size_t n, size_t integer_bytes)
{
    char wanted[BLOCK], moved[BLOCK], found[BLOCK];
    for (int64_t i = 0; i < t->n; i++) {
        size_t left = n - (size_t)i * BLOCK;
        uLongf n_found = sizeof moved;
        memset(wanted, 0, sizeof wanted);
        memcpy(wanted, data + i * BLOCK, left < BLOCK ? left : BLOCK);
        EXPECT(uncompress((Bytef *)moved, &n_found, t->packed[i], t->sizes[i]) == Z_OK && n_found == BLOCK,
               "block %lld", (long long)i);
        for (size_t k = 0; k < BLOCK; k++) {
            found[k] = moved[k % integer_bytes * (BLOCK / integer_bytes) + k / integer_bytes];
        }
        EXPECT(memcmp(found, wanted, BLOCK) == 0, "block %lld of %zu bytes", (long long)i, n);
    }
}

int main(void)
{
    static const size_t sizes[] = {0, 4, BLOCK - 4, BLOCK, BLOCK + 4, 97 * BLOCK + 12, MOST * BLOCK};
    struct taken *one = calloc(1, sizeof *one), *t = calloc(1, sizeof *t);
    char *data = malloc(MOST * BLOCK);
    EXPECT(one != NULL && t != NULL && data != NULL, "memory");
    uint32_t x = 1;
    for (size_t i = 0; i < MOST * BLOCK; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (char)(i % (3 * BLOCK) < BLOCK ? x >> 24 : i / 7); /* a third cannot be packed */
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct deflate_blocks b = {
            .data = data, .n_bytes = sizes[i], .block_bytes = BLOCK, .integer_bytes = i % 2 == 0 ? 4 : 1};
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            struct taken *now = n_threads == 1 ? one : t;
            omp_set_num_threads(n_threads);
            *now = (struct taken){.fails_at = -1};
            EXPECT_OK(deflate_blocks_run(&b, take, now));
            EXPECT(now->n == (int64_t)((sizes[i] + BLOCK - 1) / BLOCK), "%lld blocks of %zu bytes",
                   (long long)now->n, sizes[i]);
            expect_unpacked(now, data, sizes[i], b.integer_bytes);
            EXPECT(memcmp(now, one, sizeof *one) == 0, "other bytes with %d threads", n_threads);
        }
    }
    struct deflate_blocks b = {
        .data = data, .n_bytes = MOST * BLOCK, .block_bytes = BLOCK, .integer_bytes = 4};
    /* numbers that count up again and again are packed as what repeats, not as what runs */
    int32_t *counting = (int32_t *)data;
    for (int i = 0; i < MOST * BLOCK / 4; i++) {
        counting[i] = i % 50;
    }
    *t = (struct taken){.fails_at = -1};
    EXPECT_OK(deflate_blocks_run(&b, take, t));
    EXPECT(t->n == MOST && t->sizes[MOST / 2] < BLOCK / 8, "%zu bytes for a block that repeats",
           t->sizes[MOST / 2]);
    expect_unpacked(t, data, MOST * BLOCK, 4);
    *t = (struct taken){.fails_at = 50};
    EXPECT_ERROR(deflate_blocks_run(&b, take, t), STATUS_IO, "no more");
    EXPECT(t->n == 50, "%lld blocks", (long long)t->n);
    free(one);
    free(t);
    free(data);
    return 0;
}
