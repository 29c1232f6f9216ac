/* json_fields: a few fields of a line of JSON Lines, whatever the others hold.
 *
 * Published corpora have lines that a complete parser refuses for fields that nobody reads: NaN and 1e999
 * (Python writes the first), integers beyond 63 bits, a key twice, objects a thousand levels deep, \u0000 and
 * half surrogate pairs.  So the values of other fields are only stepped over, by quotation marks and
 * brackets. */
#ifndef KILN_CORPUS_JSON_FIELDS_H
#define KILN_CORPUS_JSON_FIELDS_H

#include "core/buf.h"

#include <stdbool.h>

/* A value as it stands in the line; text NULL: there is none. */
struct json_slice {
    const char *text;
    size_t n;
};

/* Finds the values of n keys in a line that is one object; of a key that stands twice the last one, as Python
 * does.  False if the line is no object, or does not end with it. */
bool json_fields_find(struct json_slice *values, const char *const *keys, int n, const char *line,
                      size_t n_line);

/* Appends a string, as json_parse_text reads it.  False, and nothing is appended, if the value is no string,
 * or one that breaks the rules of JSON, such as with the escape \q. */
bool json_fields_string(struct buf *out, struct json_slice value);

/* Appends a string as json_fields_string does, but keeps U+0000. */
bool json_fields_exact(struct buf *out, struct json_slice value);

/* Takes the next item of an array, from *at = 0 on; false after the last, and for a value that is no
 * array. */
bool json_fields_item(struct json_slice *item, struct json_slice array, size_t *at);

#endif
