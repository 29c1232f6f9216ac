/* Vectors lie side by side in a buffer of their own, in the order of the flat buffers, with the padding of
 * their slabs; shards find their part of it, in runs. */
#include "pass/vector_places.h"
#include "test.h"

enum { N_PARAMS = 5, N_ELEMENTS = 6144 };

/* A matrix, two vectors, a matrix, the bias of a product. */
static struct param params[N_PARAMS] = {
    {.n_dims = 2, .dims = {4, 4}, .offset = 0},
    {.n_dims = 1, .dims = {5}, .offset = 1024},
    {.n_dims = 1, .dims = {3}, .offset = 2048},
    {.n_dims = 2, .dims = {30, 40}, .offset = 3072},
    {.n_dims = 1, .dims = {30}, .offset = 5120, .is_bias = true},
};
static const struct param_table table = {
    .params = params, .n = N_PARAMS, .capacity = N_PARAMS, .n_elements = N_ELEMENTS};

static void places_are_side_by_side(bool rounds_biases)
{
    const int64_t wanted[N_PARAMS] = {0, 0, 1024, 3072, rounds_biases ? 5120 : 2048};
    const struct device device = {.takes_rounded_biases = rounds_biases};
    struct vector_places v;
    EXPECT_OK(vector_places_init(&v, &table, &device, 0));
    EXPECT(v.n == (rounds_biases ? 2048 : 3072) && v.table.n == N_PARAMS && v.table.n_elements == N_ELEMENTS,
           "%lld elements", (long long)v.n);
    for (int i = 0; i < N_PARAMS; i++) {
        EXPECT(v.table.params[i].offset == wanted[i], "parameter %d is at %lld", i,
               (long long)v.table.params[i].offset);
    }
    vector_places_fini(&v);
}

/* Other matrices than those of rounded layers lie with the vectors: here all but the one of layer 0. */
static void matrices_outside_of_layers_are_there(void)
{
    const struct device device = {.takes_rounded_biases = false};
    struct param outside = {.n_dims = 2, .layer = 1}, before = {.n_dims = 2, .layer = -1},
                 inside = {.n_dims = 2};
    struct vector_places v;
    EXPECT_OK(vector_places_init(&v, &table, &device, 1));
    EXPECT(vector_places_has(&v, &outside) && vector_places_has(&v, &before) &&
               !vector_places_has(&v, &inside),
           "another matrix is with the vectors");
    vector_places_fini(&v);
}

static void shards_know_what_is_before_them(void)
{
    static const int64_t cases[][2] = {{0, 0},       {1024, 0},    {1500, 476},  {2048, 1024}, {2500, 1476},
                                       {3072, 2048}, {5120, 2048}, {5130, 2058}, {6144, 3072}};
    const struct device device = {.takes_rounded_biases = false};
    struct vector_places v;
    EXPECT_OK(vector_places_init(&v, &table, &device, 0));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t n = vector_places_before(&v, &table, cases[i][0]);
        EXPECT(n == cases[i][1], "%lld elements are before %lld", (long long)n, (long long)cases[i][0]);
    }
    vector_places_fini(&v);
}

static void expect_run(const struct vector_places *v, struct param_shard *shard, int64_t from, int64_t at,
                       int64_t n)
{
    int64_t found_from = -1, found_at = -1, found_n = -1;
    EXPECT(vector_places_next(v, &table, shard, &found_from, &found_at, &found_n), "no run from %lld",
           (long long)from);
    EXPECT(found_from == from && found_at == at && found_n == n, "%lld from %lld at %lld", (long long)found_n,
           (long long)found_from, (long long)found_at);
}

static void expect_end(const struct vector_places *v, struct param_shard *shard)
{
    int64_t from, at, n;
    EXPECT(!vector_places_next(v, &table, shard, &from, &at, &n), "another run");
}

static void shards_have_runs(void)
{
    const struct device device = {.takes_rounded_biases = false};
    struct param_shard all = {0, N_ELEMENTS}, part = {1500, 2500}, matrix = {3072, 5120}, last = {5000, 5200};
    struct vector_places v;
    EXPECT_OK(vector_places_init(&v, &table, &device, 0));
    expect_run(&v, &all, 1024, 0, 2048); /* neighbours are one run */
    expect_run(&v, &all, 5120, 2048, 1024);
    expect_end(&v, &all);
    expect_run(&v, &part, 1500, 476, 1000);
    expect_end(&v, &part);
    expect_end(&v, &matrix);
    expect_run(&v, &last, 5120, 2048, 80);
    expect_end(&v, &last);
    vector_places_fini(&v);
}

int main(void)
{
    places_are_side_by_side(false);
    places_are_side_by_side(true);
    matrices_outside_of_layers_are_there();
    shards_know_what_is_before_them();
    shards_have_runs();
    return 0;
}
