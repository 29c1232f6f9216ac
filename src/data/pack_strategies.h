/* pack_strategies: counts the lists of lengths that share a pack, for the metadata of packed data. */
#ifndef KILN_DATA_PACK_STRATEGIES_H
#define KILN_DATA_PACK_STRATEGIES_H

#include "data/pack.h"

#include <stddef.h>

enum { PACK_STRATEGIES_TOP = 8 };

struct pack_strategies {
    struct pack_strategy {
        uint64_t lengths; /* 20 bits each, longest first */
        int64_t n;        /* packs that have them */
    } * sorted;           /* [n] by lengths */
    int64_t n;
    size_t capacity;
};

/* Counts the list of a row.  STATUS_MEMORY. */
struct status pack_strategies_count(struct pack_strategies *s, const struct pack_row *row,
                                    const int32_t *lengths);

/* The numbers of the most common ones, ties by number; -1 if there are fewer. */
void pack_strategies_top(const struct pack_strategies *s, int64_t top[PACK_STRATEGIES_TOP]);

/* Safe on a zeroed struct. */
void pack_strategies_fini(struct pack_strategies *s);

#endif
