/* base64: bytes as text (RFC 4648). */
#ifndef KILN_CORE_BASE64_H
#define KILN_CORE_BASE64_H

#include "core/buf.h"

/* Appends what the text stands for, in either alphabet (RFC 4648 sections 4 and 5), up to its padding; false
 * at another character. */
bool base64_decode(struct buf *out, const char *text);

/* Appends the text of n bytes, in the alphabet of section 4, with its padding. */
void base64_encode(struct buf *out, const void *bytes, size_t n);

#endif
