#include "data/store_check.h"

#include "core/integers.h"

#include <stdlib.h>

enum { W = STORE_OVERLAP_TOKENS, MOST_PLACES = 1 << 20, N_SLOTS = 1 << 22, AT_ONCE = 4096 };

static const uint64_t FACTOR = 0x9e3779b97f4a7c15;

/* The hash of the last W tokens of a store that is read from its beginning. */
struct reader {
    const struct indexed *store;
    int32_t ids[AT_ONCE + W]; /* ids of the W tokens before `n_read`, and those after it */
    int64_t n_read, n_ready;
    uint64_t hash, oldest; /* oldest: FACTOR to the power of W */
};

static void reader_init(struct reader *r, const struct indexed *store)
{
    *r = (struct reader){.store = store, .oldest = 1};
    for (int i = 0; i < W; i++) {
        r->oldest *= FACTOR;
    }
}

/* Moves the hash on by a token; false at the end. */
static bool next(struct reader *r)
{
    int64_t at = r->n_read % AT_ONCE;
    if (r->n_read == r->store->n_tokens) {
        return false;
    }
    if (at == 0) {
        for (int i = 0; i < W; i++) {
            r->ids[i] = r->n_read == 0 ? -1 : r->ids[AT_ONCE + i];
        }
        indexed_copy(r->store, r->ids + W, r->n_read, int_smaller(AT_ONCE, r->store->n_tokens - r->n_read));
    }
    r->hash = r->hash * FACTOR + (uint64_t)r->ids[W + at] + 1 - ((uint64_t)r->ids[at] + 1) * r->oldest;
    r->n_read++;
    return true;
}

/* Places of the held-out text with one hash; open addressing. */
struct place {
    uint64_t hash;
    uint32_t n;
    bool is_found;
};

static struct place *find(struct place *places, uint64_t hash)
{
    uint64_t at = hash >> 40;
    while (places[at % N_SLOTS].n > 0 && places[at % N_SLOTS].hash != hash) {
        at++;
    }
    return &places[at % N_SLOTS];
}

struct status store_overlap(double *share, const struct indexed *heldout, const struct indexed *train)
{
    struct place *places = calloc(N_SLOTS, sizeof *places);
    struct reader *r = malloc(sizeof *r);
    int64_t n = 0, n_found = 0;
    if (places == NULL || r == NULL) {
        free(places);
        free(r);
        return status_error(STATUS_MEMORY,
                            "out of memory to compare held-out text with the text to train on");
    }
    reader_init(r, heldout);
    while (n < MOST_PLACES && next(r)) {
        if (r->n_read >= W) {
            struct place *p = find(places, r->hash);
            p->hash = r->hash;
            p->n++;
            n++;
        }
    }
    reader_init(r, train);
    while (next(r)) {
        struct place *p = find(places, r->hash);
        if (r->n_read >= W && !p->is_found) {
            n_found += p->n;
            p->is_found = p->n > 0;
        }
    }
    *share = n > 0 ? (double)n_found / (double)n : 0;
    free(places);
    free(r);
    return status_ok();
}
