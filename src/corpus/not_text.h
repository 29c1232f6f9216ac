/* not_text: files that users have where a corpus is wanted, and that would be read as prose or as dirt: dumps,
 * JSON, archives, compressed files, tensors.  Each is known by its first bytes, and has a name and a way out. */
#ifndef KILN_CORPUS_NOT_TEXT_H
#define KILN_CORPUS_NOT_TEXT_H

#include "core/status.h"

#include <stddef.h>

/* Bytes from the beginning of a file that are looked at; more change nothing. */
enum { NOT_TEXT_LOOK_BYTES = 1 << 16 };

struct not_text {
    const char *name; /* "a MediaWiki dump (XML)" */
    const char *advice;
    bool is_readable; /* characters throughout, which can be read as prose where the user says so */
};

/* What text[0..n), the beginning of a file, is; NULL if it may be plain text.  Owned by nobody. */
const struct not_text *not_text_find(const char *text, size_t n);

/* The same for what has no name but too many control characters for text: "binary data", or NULL. */
const struct not_text *not_text_find_binary(const char *text, size_t n);

/* STATUS_DATA: "PATH is NAME, not plain text: ADVICE", and `more` behind that. */
struct status not_text_refuse(const struct not_text *found, const char *path, const char *more);

#endif
