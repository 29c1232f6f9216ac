#include "io/bump.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16 << 10 };

struct bump_block {
    struct bump_block *older;
    size_t bytes;
    alignas(max_align_t) unsigned char data[];
};

struct bump bump_with_limit(size_t limit)
{
    return (struct bump){.limit = limit};
}

/* A block for at least `bytes`; the rest of the previous block stays unused. */
static bool add_block(struct bump *b, size_t bytes)
{
    size_t n = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    if (n > b->limit - b->used) {
        n = bytes;
    }
    b->exceeded = n > b->limit - b->used;
    struct bump_block *block = b->exceeded ? NULL : calloc(1, sizeof *block + n);
    if (block == NULL) {
        b->failed = true;
        return false;
    }
    *block = (struct bump_block){.older = b->newest, .bytes = n};
    b->newest = block;
    b->left = n;
    b->used += n;
    return true;
}

void *bump_take(struct bump *b, size_t bytes)
{
    const size_t unit = alignof(max_align_t);
    if (bytes > b->limit) {
        b->failed = b->exceeded = true;
    }
    if (b->failed) {
        return NULL;
    }
    size_t rounded = (bytes + unit - 1) / unit * unit;
    if ((b->newest == NULL || rounded > b->left) && !add_block(b, rounded)) {
        return NULL;
    }
    unsigned char *taken = b->newest->data + (b->newest->bytes - b->left);
    b->left -= rounded;
    return taken;
}

char *bump_copy(struct bump *b, const void *bytes, size_t n)
{
    char *copy = n < SIZE_MAX ? bump_take(b, n + 1) : NULL;
    if (copy != NULL && n > 0) {
        memcpy(copy, bytes, n);
    }
    return copy;
}

struct status bump_status(const struct bump *b, const char *source)
{
    FAIL_IF(b->exceeded, STATUS_DATA, "%s: its objects need more memory than the limit of %zu MiB", source,
            b->limit >> 20);
    return b->failed ? status_error(STATUS_MEMORY, "out of memory for the contents of %s", source)
                     : status_ok();
}

void bump_fini(struct bump *b)
{
    while (b->newest != NULL) {
        struct bump_block *older = b->newest->older;
        free(b->newest);
        b->newest = older;
    }
    *b = (struct bump){0};
}
