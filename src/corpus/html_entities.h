/* html_entities: HTML's named and numbered characters: &nbsp; &#160; &#xA0;.
 * Source: the HTML standard, section 13.5 (all names that end in a semicolon), and section 13.2.5.80
 * (numbers). */
#ifndef KILN_CORPUS_HTML_ENTITIES_H
#define KILN_CORPUS_HTML_ENTITIES_H

#include <stddef.h>

enum {
    HTML_ENTITY_TEXT_BYTES = 8, /* two characters at most */
    HTML_ENTITY_NAME_BYTES = 32,
    HTML_ENTITY_LETTERS = 'z' + 1,
};

/* The character that text[0..n), which begins with '&', stands for: writes its *out_bytes bytes and returns
 * how many bytes of text it took; 0 if this is no reference to a character.  *out_bytes is 0 for a number
 * that is none: a surrogate, a control character, or above U+10FFFF. */
size_t html_entities_decode(char out[HTML_ENTITY_TEXT_BYTES], size_t *out_bytes, const char *text, size_t n);

/* The generated table: by their first letter, "name=character name=character", in the order of strcmp. */
extern const char *const html_entities[HTML_ENTITY_LETTERS];

#endif
