/* vector_search: the rows of a matrix whose scalar products with a vector are the largest.  The search is
 * exact: it reads every row. */
#ifndef KILN_SERVE_VECTOR_SEARCH_H
#define KILN_SERVE_VECTOR_SEARCH_H

#include "core/status.h"

#include <stdint.h>

struct vector_hit {
    int64_t row; /* -1: the matrix has no more rows */
    float score; /* the scalar product */
};

/* Finds, for each of the queries [n_queries, width], the k best of rows [n, width], in hits [n_queries, k]:
 * the best first, of equal ones the first row.  STATUS_MEMORY. */
struct status vector_search(struct vector_hit *hits, int64_t k, const float *queries, int64_t n_queries,
                            const float *rows, int64_t n, int64_t width);

#endif
