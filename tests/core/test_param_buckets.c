/* Buckets of layers: adjacent, over all layers from the last to the first, as large as asked for, and never
 * too many. */
#include "core/param_buckets.h"
#include "test.h"

enum { SLAB = PARAM_ALIGNMENT };

/* Layers first to end - 1, each of two slabs; with `wide` the first is of 100. */
static struct param_table make_table(int64_t first, int64_t end, bool wide)
{
    struct param_table t = {0};
    for (int64_t layer = first; layer < end; layer++) {
        int64_t n = (layer == first && wide ? 100 : 2) * SLAB;
        struct param p = {.name = "x", .n_dims = 1, .dims = {n}, .layer = layer};
        p.offset = param_table_slab(&t, n);
        param_table_add(&t, p);
    }
    EXPECT_OK(param_table_status(&t));
    return t;
}

static void cover_the_buffer(const struct param_table *t, const struct param_buckets *b, int64_t first,
                             int64_t end)
{
    void *memory = malloc((size_t)t->n_elements);
    EXPECT(memory != NULL, "out of memory");
    tensor flat = tensor_1d(memory, DTYPE_U8, t->n_elements);
    const char *at = (const char *)flat.data + t->n_elements;
    EXPECT(b->n > 0 && b->n <= PARAM_MOST_BUCKETS, "%d buckets", b->n);
    EXPECT(b->bounds[0] == end && b->bounds[b->n] == first, "layers %lld to %lld", (long long)b->bounds[b->n],
           (long long)b->bounds[0]);
    for (int i = 0; i < b->n; i++) {
        tensor part = param_buckets_view(b, i, t, flat);
        EXPECT(b->bounds[i + 1] < b->bounds[i], "bucket %d is empty", i);
        EXPECT((const char *)part.data + tensor_count(part) == at, "a gap after bucket %d", i);
        EXPECT(param_buckets_find(b, b->bounds[i + 1]) == i, "bucket %d is not found", i);
        at = part.data;
    }
    EXPECT(at == flat.data, "the first elements are in no bucket");
    free(memory);
}

static void expect_bounds(int64_t elements, const int64_t *wanted, int n)
{
    struct param_table t = make_table(-1, 6, true); /* 7 layers: 100 slabs, then 2 each */
    struct param_buckets b = param_buckets_of(&t, -1, 6, elements);
    cover_the_buffer(&t, &b, -1, 6);
    EXPECT(b.n == n, "%d buckets of %lld elements", b.n, (long long)elements);
    for (int i = 0; i <= n; i++) {
        EXPECT(b.bounds[i] == wanted[i], "bound %d is %lld", i, (long long)b.bounds[i]);
    }
    param_table_fini(&t);
}

static void buckets_are_as_large_as_asked_for(void)
{
    /* a 31st of the elements is 3.6 slabs, so a bucket has two layers at least */
    expect_bounds(1, (const int64_t[]){6, 4, 2, 0, -1}, 4);
    expect_bounds(4 * SLAB, (const int64_t[]){6, 4, 2, 0, -1}, 4);
    expect_bounds(4 * SLAB + 1, (const int64_t[]){6, 3, 0, -1}, 3);
    expect_bounds(12 * SLAB + 1, (const int64_t[]){6, -1}, 1);
    expect_bounds(0, (const int64_t[]){6, -1}, 1);
}

static void there_are_never_too_many(void)
{
    for (int64_t n = 1; n < 200; n += 3) {
        struct param_table t = make_table(0, n, false);
        struct param_buckets b = param_buckets_of(&t, 0, n, 1);
        cover_the_buffer(&t, &b, 0, n);
        EXPECT(b.n == n || n > PARAM_MOST_SIZED - 1, "%d buckets of %lld layers", b.n, (long long)n);
        EXPECT(b.n <= PARAM_MOST_SIZED, "%d buckets", b.n);
        EXPECT(n < PARAM_MOST_SIZED || b.n >= PARAM_MOST_SIZED / 2, "only %d buckets", b.n);
        b = param_buckets_of_layers(0, n);
        cover_the_buffer(&t, &b, 0, n);
        EXPECT(b.n == n || n > PARAM_MOST_BUCKETS, "%d buckets for %lld layers", b.n, (long long)n);
        EXPECT(n <= PARAM_MOST_BUCKETS || b.n >= PARAM_MOST_BUCKETS / 2, "only %d buckets", b.n);
        param_table_fini(&t);
    }
}

/* Of a pipeline's stage. */
static void a_range_of_layers(void)
{
    struct param_table t = make_table(-1, 6, false);
    struct param_buckets b = param_buckets_of(&t, 2, 4, 1);
    EXPECT(b.n == 2 && b.bounds[0] == 4 && b.bounds[1] == 3 && b.bounds[2] == 2, "%d buckets", b.n);
    EXPECT(param_buckets_find(&b, 4) < 0 && param_buckets_find(&b, 1) < 0, "of other layers");
    param_table_fini(&t);
}

int main(void)
{
    buckets_are_as_large_as_asked_for();
    there_are_never_too_many();
    a_range_of_layers();
    return 0;
}
