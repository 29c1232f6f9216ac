/* buf: a growing byte buffer, used for text and for binary files that are built in memory.
 *
 * Failure is sticky: an append that runs out of memory marks the buffer and later appends do nothing, so a
 * writer checks once, at its end, with buf_status.  The bytes are always followed by a NUL, which n does not
 * count. */
#ifndef KILN_CORE_BUF_H
#define KILN_CORE_BUF_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data; /* [n] and a NUL; NULL while empty */
    size_t n;
    size_t capacity;
    bool failed;
};

/* Frees the text; safe on a zeroed struct. */
void buf_fini(struct buf *b);
void buf_clear(struct buf *b); /* n = 0; keeps the memory */

/* Appends; all do nothing on a failed buffer. */
void buf_append(struct buf *b, const void *bytes, size_t n);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Room for n more bytes, uninitialised and already counted; NULL on a failed buffer. */
void *buf_extend(struct buf *b, size_t n);

/* STATUS_MEMORY if any append ran out of memory. */
struct status buf_status(const struct buf *b);

/* The text, "" while empty; borrowed until the next append. */
const char *buf_text(const struct buf *b);

#endif
