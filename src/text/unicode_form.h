/* unicode_form: the canonical normalization forms of Unicode (UAX #15), with the places of the original text.
 *
 * A segment, a character and the marks after it, is normalized alone: no other character composes with what
 * stands before it.  Bytes that are no UTF-8 stay as they are. */
#ifndef KILN_TEXT_UNICODE_FORM_H
#define KILN_TEXT_UNICODE_FORM_H

#include "text/normal_text.h"

#include <stdint.h>

enum unicode_form { UNICODE_NFC, UNICODE_NFD };

/* Memory for the code points of a segment; a zeroed struct is empty. */
struct unicode_form_room {
    int32_t *points; /* [capacity] */
    size_t capacity;
};
void unicode_form_room_fini(struct unicode_form_room *r);

/* Whether the text surely is in the form already: it is all below U+0300, or below U+0080. */
bool unicode_form_is_plain(enum unicode_form form, const char *text, size_t n);

/* Appends `from` in the form to `out`, whose failure is sticky, and ends it. */
void unicode_form_apply(struct normal_text *out, struct unicode_form_room *room, enum unicode_form form,
                        const struct normal_text *from);

#endif
