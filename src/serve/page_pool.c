#include "serve/page_pool.h"

#include <stdlib.h>

struct status page_pool_init(struct page_pool *p, int64_t n)
{
    *p = (struct page_pool){.free = calloc((size_t)n + 1, sizeof *p->free),
                            .uses = calloc((size_t)n + 1, sizeof *p->uses),
                            .n = n,
                            .n_free = n};
    FAIL_IF(p->free == NULL || p->uses == NULL, STATUS_MEMORY, "out of memory for a list of %lld pages",
            (long long)n);
    for (int64_t i = 0; i < n; i++) {
        p->free[i] = (int32_t)(n - 1 - i);
    }
    return status_ok();
}

void page_pool_fini(struct page_pool *p)
{
    free(p->free);
    free(p->uses);
    *p = (struct page_pool){0};
}

bool page_pool_take(struct page_pool *p, int32_t *pages, int64_t n)
{
    if (n > p->n_free) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        pages[i] = p->free[--p->n_free];
        p->uses[pages[i]] = 1;
    }
    return true;
}

void page_pool_share(struct page_pool *p, const int32_t *pages, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        CHECK(p->uses[pages[i]] > 0, "page %d is free", (int)pages[i]);
        p->uses[pages[i]]++;
    }
}

void page_pool_give(struct page_pool *p, const int32_t *pages, int64_t n)
{
    for (int64_t i = n; i-- > 0;) {
        CHECK(p->uses[pages[i]] > 0, "page %d is given back twice", (int)pages[i]);
        if (--p->uses[pages[i]] == 0) {
            p->free[p->n_free++] = pages[i];
        }
    }
}
