#include "core/param_buckets.h"

static int64_t elements_of(const struct param_table *t, int64_t first, int64_t end)
{
    int64_t from, to;
    param_table_range(t, first, end, &from, &to);
    return to - from;
}

struct param_buckets param_buckets_of(const struct param_table *t, int64_t first, int64_t end,
                                      int64_t elements)
{
    struct param_buckets b = {.bounds = {end}};
    int64_t least = elements > 0 ? elements : PARAM_BUCKET_ELEMENTS;
    int64_t fewest = (elements_of(t, first, end) + PARAM_MOST_SIZED - 2) / (PARAM_MOST_SIZED - 1);
    CHECK(end > first, "layers %lld to %lld", (long long)first, (long long)end);
    least = least > fewest ? least : fewest;
    for (int64_t layer = end - 1; layer >= first; layer--) {
        if (layer == first || elements_of(t, layer, b.bounds[b.n]) >= least) {
            b.bounds[++b.n] = layer;
        }
    }
    return b;
}

struct param_buckets param_buckets_of_layers(int64_t first, int64_t end)
{
    struct param_buckets b = {.bounds = {end}};
    int64_t layers = (end - first + PARAM_MOST_BUCKETS - 1) / PARAM_MOST_BUCKETS;
    CHECK(end > first, "layers %lld to %lld", (long long)first, (long long)end);
    for (int64_t layer = end; layer > first;) {
        layer = layer - layers > first ? layer - layers : first;
        b.bounds[++b.n] = layer;
    }
    return b;
}

int param_buckets_find(const struct param_buckets *b, int64_t layer)
{
    for (int i = 0; i < b->n; i++) {
        if (b->bounds[i + 1] == layer) {
            return i;
        }
    }
    return -1;
}

void param_buckets_range(const struct param_buckets *b, int i, const struct param_table *t, int64_t *from,
                         int64_t *to)
{
    param_table_range(t, b->bounds[i + 1], b->bounds[i], from, to);
}

tensor param_buckets_view(const struct param_buckets *b, int i, const struct param_table *t, tensor flat)
{
    int64_t from, to;
    param_buckets_range(b, i, t, &from, &to);
    return tensor_slice(flat, from, to - from);
}
