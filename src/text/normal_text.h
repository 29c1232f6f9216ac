/* normal_text: a text that a normalizer changed, and where its bytes come from in the original.
 *
 * Failure is sticky, as in core/buf.h: normal_text_status says at the end whether memory ran out. */
#ifndef KILN_TEXT_NORMAL_TEXT_H
#define KILN_TEXT_NORMAL_TEXT_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

struct normal_text {
    char *bytes;     /* [n] */
    size_t *origins; /* [n + 1] where the original of each byte begins, ascending, if kept */
    size_t n, capacity;
    bool keeps_origins, failed;
};

/* Safe on a zeroed struct, which is empty. */
void normal_text_fini(struct normal_text *t);

/* Empties it, and keeps the memory. */
void normal_text_clear(struct normal_text *t, bool keeps_origins);

/* Appends bytes that all stand for what begins at `origin`; or bytes that were not changed, the first of them
 * from byte `at` of `from`, which kept its origins if `t` does. */
void normal_text_put(struct normal_text *t, const char *bytes, size_t n, size_t origin);
void normal_text_copy(struct normal_text *t, const struct normal_text *from, size_t at, size_t n);

/* The origin after the last byte: that of `from`, or the length of the original. */
void normal_text_end(struct normal_text *t, size_t origin);

/* Where byte `at` of a text comes from; at = n: the end. */
size_t normal_text_origin(const struct normal_text *t, size_t at);

/* The first place of wanted[0..n_wanted), not empty, in text[0..n); NULL: there is none. */
const char *normal_text_find(const char *text, size_t n, const char *wanted, size_t n_wanted);

/* STATUS_MEMORY, if an append failed. */
struct status normal_text_status(const struct normal_text *t);

#endif
