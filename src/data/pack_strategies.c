#include "data/pack_strategies.h"

#include "core/array.h"

#include <stdlib.h>
#include <string.h>

struct status pack_strategies_count(struct pack_strategies *s, const struct pack_row *row,
                                    const int32_t *lengths)
{
    uint64_t key = 0;
    for (int k = 0; k < row->n; k++) {
        key |= (uint64_t)lengths[row->sequences[k]] << (20 * (PACK_MOST - 1 - k));
    }
    int64_t low = 0, high = s->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s->sorted[middle].lengths < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < s->n && s->sorted[low].lengths == key) {
        s->sorted[low].n++;
        return status_ok();
    }
    FAIL_IF(!ARRAY_RESERVE(s->sorted, s->capacity, s->n + 1), STATUS_MEMORY,
            "out of memory for %lld lists of lengths", (long long)s->n + 1);
    memmove(s->sorted + low + 1, s->sorted + low, (size_t)(s->n - low) * sizeof *s->sorted);
    s->sorted[low] = (struct pack_strategy){key, 1};
    s->n++;
    return status_ok();
}

void pack_strategies_top(const struct pack_strategies *s, int64_t top[PACK_STRATEGIES_TOP])
{
    for (int k = 0; k < PACK_STRATEGIES_TOP; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < s->n; i++) {
            bool taken = false;
            for (int j = 0; j < k; j++) {
                taken |= top[j] == i;
            }
            if (!taken && (best < 0 || s->sorted[i].n > s->sorted[best].n)) {
                best = i;
            }
        }
        top[k] = best;
    }
}

void pack_strategies_fini(struct pack_strategies *s)
{
    free(s->sorted);
    *s = (struct pack_strategies){0};
}
