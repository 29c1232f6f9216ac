#include "text/word_cache.h"

#include <stdlib.h>

const uint8_t word_cache_keep[2 * WORD_CACHE_SHORT_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                             255, 255, 255, 255, 255, 255, 255, 255};

static const size_t line_bytes = 64;

/* Zeroed, at the start of a cache line; NULL if memory runs out. */
static void *allocate(size_t n_bytes)
{
    void *p = aligned_alloc(line_bytes, n_bytes);
    return p != NULL ? memset(p, 0, n_bytes) : NULL;
}

bool word_cache_init(struct word_cache *c)
{
    c->shorts = allocate(sizeof *c->shorts * 2 << WORD_CACHE_SHORT_BITS);
    c->longs = allocate(sizeof *c->longs * 2 << WORD_CACHE_LONG_BITS);
    if (c->shorts == NULL || c->longs == NULL) {
        word_cache_fini(c);
        return false;
    }
    return true;
}

void word_cache_fini(struct word_cache *c)
{
    free(c->shorts);
    free(c->longs);
    *c = (struct word_cache){0};
}

static struct word_cache_long *find_pair(const struct word_cache *c, const uint64_t run[4])
{
    uint64_t h = word_cache_hash(run) + 31 * word_cache_hash(run + 2);
    return c->longs + 2 * (h >> (64 - WORD_CACHE_LONG_BITS));
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
        struct word_cache_short *pair =
            c->shorts + 2 * (word_cache_hash(e.run) >> (64 - WORD_CACHE_SHORT_BITS));
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
