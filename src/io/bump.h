/* bump: an allocator that only grows, up to a limit, and is freed all at once.  Readers of untrusted files
 * allocate from it, so that no file can make them use more memory than the limit. */
#ifndef KILN_IO_BUMP_H
#define KILN_IO_BUMP_H

#include "core/status.h"

#include <stddef.h>

struct bump_block;

struct bump {
    struct bump_block *newest;
    size_t left;   /* bytes free in the newest block */
    size_t used;   /* bytes in all blocks */
    size_t limit;  /* most bytes that `used` may reach */
    bool exceeded; /* an allocation would have passed the limit */
    bool failed;   /* an allocation failed: over the limit, or out of memory */
};

/* An allocator that gives at most `limit` bytes. */
struct bump bump_with_limit(size_t limit);

/* Zeroed bytes, aligned for every type; on failure NULL, and the bump stays failed. */
void *bump_take(struct bump *b, size_t bytes);

/* A copy of `n` bytes, with a NUL after it. */
char *bump_copy(struct bump *b, const void *bytes, size_t n);

/* STATUS_DATA if `source` needed more than the limit, STATUS_MEMORY if the machine has no memory left. */
struct status bump_status(const struct bump *b, const char *source);

/* Safe on a zeroed struct. */
void bump_fini(struct bump *b);

#endif
