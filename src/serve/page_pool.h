/* page_pool: which pages of a cache of keys and values are free, and how many texts use each other one. */
#ifndef KILN_SERVE_PAGE_POOL_H
#define KILN_SERVE_PAGE_POOL_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

struct page_pool {
    int32_t *free; /* [n_free] the next to be taken is the last */
    int64_t n, n_free;
    int32_t *uses; /* [n] of each page */
};

/* Makes a pool of n free pages.  STATUS_MEMORY.  Fini is safe on a zeroed struct and after a failed init. */
struct status page_pool_init(struct page_pool *p, int64_t n);
void page_pool_fini(struct page_pool *p);

/* Takes n pages, or none: false, if fewer are free. */
bool page_pool_take(struct page_pool *p, int32_t *pages, int64_t n);

/* One more text uses these pages, which it only reads. */
void page_pool_share(struct page_pool *p, const int32_t *pages, int64_t n);

/* One text less uses them; a page that none uses is free. */
void page_pool_give(struct page_pool *p, const int32_t *pages, int64_t n);

#endif
