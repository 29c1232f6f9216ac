#include "serve/vector_search.h"

#include "core/integers.h"
#include "ops/backend.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK_ROWS = 16384 }; /* products of a block stay in the cache until they are compared */

/* Keeps a hit among the k best. */
static void keep(struct vector_hit *best, int64_t k, struct vector_hit hit)
{
    if (!(hit.score > best[k - 1].score)) {
        return;
    }
    int64_t at = k - 1;
    for (; at > 0 && hit.score > best[at - 1].score; at--) {
        best[at] = best[at - 1];
    }
    best[at] = hit;
}

static tensor matrix(const float *data, int64_t n, int64_t width)
{
    return tensor_2d((void *)data, DTYPE_F32, n, width);
}

struct status vector_search(struct vector_hit *hits, int64_t k, const float *queries, int64_t n_queries,
                            const float *rows, int64_t n, int64_t width)
{
    struct backend cpu;
    float *products = malloc((size_t)(n_queries * BLOCK_ROWS) * sizeof *products + 1);
    FAIL_IF(products == NULL, STATUS_MEMORY, "out of memory for a search of %lld vectors",
            (long long)n_queries);
    struct status s = backend_find(&cpu, "cpu");
    struct exec x = {
        .device = cpu.device, .ops = cpu.ops, .layer = "a search", .layer_index = -1, .rows_alone = true};
    for (int64_t i = 0; i < n_queries * k; i++) {
        hits[i] = (struct vector_hit){.row = -1, .score = -INFINITY};
    }
    for (int64_t first = 0; first < n && !failed(s); first += BLOCK_ROWS) {
        int64_t n_rows = int_smaller(BLOCK_ROWS, n - first);
        x.ops->linear(&x, matrix(products, n_queries, n_rows), matrix(queries, n_queries, width),
                      matrix(rows + first * width, n_rows, width), NULL_TENSOR);
        s = x.status;
        for (int64_t i = 0; i < n_queries * n_rows && !failed(s); i++) {
            keep(hits + i / n_rows * k, k, (struct vector_hit){first + i % n_rows, products[i]});
        }
    }
    free(products);
    return s;
}
