/* encoding: text in another encoding than UTF-8 becomes UTF-8, by iconv(3) of libc; and UTF-8 from outside is
 * checked.
 *
 * The rule: nothing is guessed and nothing is dropped.  A byte that is no text in the encoding is an error
 * with its place. */
#ifndef KILN_TEXT_ENCODING_H
#define KILN_TEXT_ENCODING_H

#include "core/buf.h"

struct encoding {
    void *converter;  /* iconv's; NULL: UTF-8, which needs none */
    const char *name; /* borrowed */
};

/* NULL is UTF-8.  Names are those of `iconv -l`, and Python's latin-1 and utf-8-sig; upper and lower case are
 * the same.  STATUS_USAGE: this machine knows no such encoding. */
struct status encoding_open(struct encoding *e, const char *name);
void encoding_close(struct encoding *e);

/* Appends text[0..n) as UTF-8.  *n_taken is the number of bytes that were converted: less than n where the
 * last character continues after text[0..n), unless it is the end.  STATUS_DATA: the byte text[*n_taken] is
 * not of this encoding; the caller says where that is. */
struct status encoding_convert(struct encoding *e, struct buf *out, const char *text, size_t n, bool is_end,
                               size_t *n_taken);

/* Begins again, with another file. */
void encoding_restart(struct encoding *e);

/* STATUS_DATA: text[0..n), of which the first line is `line` of `source`, is not UTF-8: the message names
 * line, byte and `advice`. */
struct status encoding_check_utf8(const char *text, size_t n, const char *source, int64_t line,
                                  const char *advice);

#endif
