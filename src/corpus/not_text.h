/* not_text: recognises files that users give as text but that are not: dumps, JSON, archives, compressed
 * files, tensors.  Each kind is recognised by its first bytes, and has a name and advice for the user. */
#ifndef KILN_CORPUS_NOT_TEXT_H
#define KILN_CORPUS_NOT_TEXT_H

#include "core/status.h"

#include <stddef.h>

/* The number of bytes at the beginning of a file that are examined. */
enum { NOT_TEXT_LOOK_BYTES = 1 << 16 };

struct not_text {
    const char *name; /* "a MediaWiki dump (XML)" */
    const char *advice;
    bool is_readable; /* the file has characters only, and can be read as prose if the user asks for that */
};

/* The kind of file that begins with text[0..n); NULL if it may be plain text.  The result is static. */
const struct not_text *not_text_find(const char *text, size_t n);

/* The kind of a file that not_text_find does not know: "binary data" if text[0..n) has too many control
 * characters for text, or NULL. */
const struct not_text *not_text_find_binary(const char *text, size_t n);

/* STATUS_DATA: "PATH is NAME, not plain text: ADVICE", followed by `more`. */
struct status not_text_refuse(const struct not_text *found, const char *path, const char *more);

#endif
