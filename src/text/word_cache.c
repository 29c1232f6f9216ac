#define _GNU_SOURCE /* madvise */
#include "text/word_cache.h"

#include <sys/mman.h>

const uint8_t word_cache_keep[2 * WORD_CACHE_SHORT_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                             255, 255, 255, 255, 255, 255, 255, 255};

/* Zeros, in huge pages if there are such: lookups touch the table anywhere, and with pages of 4 KiB most of
 * them would walk the page tables too.  NULL if memory runs out. */
static void *allocate(size_t n_bytes)
{
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
    madvise(p, n_bytes, MADV_HUGEPAGE); /* if it fails, the pages are small */
    return p;
}

static void deallocate(void *p, size_t n_bytes)
{
    if (p != NULL) {
        munmap(p, n_bytes);
    }
}

static size_t shorts_bytes(const struct word_cache *c)
{
    return sizeof *c->shorts * 2 << c->bits;
}

static size_t longs_bytes(const struct word_cache *c)
{
    return sizeof *c->longs * 2 << c->bits >> 2;
}

bool word_cache_init(struct word_cache *c, int bits)
{
    c->bits = bits;
    c->shorts = allocate(shorts_bytes(c));
    c->longs = allocate(longs_bytes(c));
    if (c->shorts == NULL || c->longs == NULL) {
        word_cache_fini(c);
        return false;
    }
    return true;
}

void word_cache_fini(struct word_cache *c)
{
    deallocate(c->shorts, shorts_bytes(c));
    deallocate(c->longs, longs_bytes(c));
    *c = (struct word_cache){0};
}

static struct word_cache_long *find_pair(const struct word_cache *c, const uint64_t run[4])
{
    uint64_t h = word_cache_hash(run) + 31 * word_cache_hash(run + 2);
    return c->longs + 2 * (h >> (64 + 2 - c->bits));
}

void word_cache_add(struct word_cache *c, const char *run, size_t n, const int32_t *ids, size_t n_ids)
{
    struct word_cache_long e = {.n_ids = (uint32_t)n_ids};
    if (n_ids > WORD_CACHE_LONG_IDS) {
        return;
    }
    memcpy(e.run, run, n);
    for (size_t i = 0; i < n_ids; i++) {
        e.ids[i] = ids[i];
    }
    if (n > WORD_CACHE_SHORT_BYTES || n_ids > WORD_CACHE_SHORT_IDS) {
        find_pair(c, e.run)[1] = e;
    }
    if (n <= WORD_CACHE_SHORT_BYTES) {
        struct word_cache_short *pair = word_cache_pair(c, e.run);
        pair[1] = (struct word_cache_short){{e.run[0], e.run[1]}, {e.ids[0], e.ids[1], e.ids[2]}, e.n_ids};
    }
}

const struct word_cache_short *word_cache_find_second(struct word_cache_short pair[2], const uint64_t run[2])
{
    struct word_cache_short found = pair[1];
    if (!word_cache_is_short(&found, run)) {
        return NULL;
    }
    pair[1] = pair[0];
    pair[0] = found;
    return pair;
}

static const int32_t *find_long(struct word_cache *c, const uint64_t run[4], size_t *n_ids)
{
    struct word_cache_long *pair = find_pair(c, run);
    if (memcmp(pair[0].run, run, sizeof pair[0].run) != 0) {
        if (memcmp(pair[1].run, run, sizeof pair[1].run) != 0) {
            return NULL;
        }
        struct word_cache_long found = pair[1];
        pair[1] = pair[0];
        pair[0] = found;
    }
    *n_ids = pair[0].n_ids;
    return pair[0].ids;
}

const int32_t *word_cache_find(struct word_cache *c, const char *run, size_t n, size_t *n_ids)
{
    uint64_t whole[4] = {0};
    memcpy(whole, run, n);
    if (n <= WORD_CACHE_SHORT_BYTES) {
        const struct word_cache_short *e =
            word_cache_find_short(c, (const char *)whole, WORD_CACHE_SHORT_BYTES);
        if (e == NULL || e->n_ids <= WORD_CACHE_SHORT_IDS) {
            *n_ids = e != NULL ? e->n_ids : 0;
            return e != NULL ? e->ids : NULL;
        }
    }
    return find_long(c, whole, n_ids);
}
