#include "serve/page_pool.h"

#include <stdlib.h>

struct status page_pool_init(struct page_pool *p, int64_t n)
{
    *p = (struct page_pool){.free = calloc((size_t)n + 1, sizeof *p->free), .n = n, .n_free = n};
    for (int64_t i = 0; p->free != NULL && i < n; i++) {
        p->free[i] = (int32_t)(n - 1 - i);
    }
    return p->free != NULL
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a list of %lld pages", (long long)n);
}

void page_pool_fini(struct page_pool *p)
{
    free(p->free);
    *p = (struct page_pool){0};
}

bool page_pool_take(struct page_pool *p, int32_t *pages, int64_t n)
{
    if (n > p->n_free) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        pages[i] = p->free[--p->n_free];
    }
    return true;
}

void page_pool_give(struct page_pool *p, const int32_t *pages, int64_t n)
{
    CHECK(p->n_free + n <= p->n, "%lld pages back, of %lld that are taken", (long long)n,
          (long long)(p->n - p->n_free));
    for (int64_t i = n; i-- > 0;) {
        p->free[p->n_free++] = pages[i];
    }
}
