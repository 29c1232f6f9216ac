/* bump: memory that is only added to, up to a limit, and given back as a whole: for what a reader makes of a file that
 * nobody vouches for, so that no file can ask for more than the limit. */
#ifndef KILN_IO_BUMP_H
#define KILN_IO_BUMP_H

#include "core/status.h"

#include <stddef.h>

struct bump_block;

struct bump {
    struct bump_block *newest;
    size_t left;   /* bytes free in the newest block */
    size_t used;   /* bytes of all blocks */
    size_t limit;  /* of them */
    bool exceeded; /* more than the limit was asked for */
    bool failed;   /* the limit, or the machine's memory */
};

struct bump bump_with_limit(size_t limit);

/* Zeroed bytes, aligned for every type; NULL and a failed bump (sticky) where there are no more. */
void *bump_take(struct bump *b, size_t bytes);

/* The same for a copy of `n` bytes, with a NUL behind it. */
char *bump_copy(struct bump *b, const void *bytes, size_t n);

/* STATUS_DATA if `source` asked for more than the limit, STATUS_MEMORY if the machine has no more. */
struct status bump_status(const struct bump *b, const char *source);

/* Safe on a zeroed struct. */
void bump_fini(struct bump *b);

#endif
