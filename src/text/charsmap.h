/* charsmap: SentencePiece's compiled table of replacements, such as of NFKC: a double-array trie of what is
 * replaced, and the replacements (Kudo and Richardson 2018, arXiv:1808.06226, section 3.2; the trie's units
 * are those of https://github.com/s-yata/darts-clone).
 *
 * The rule: the table is a user's bytes, so no place in it is read unchecked. */
#ifndef KILN_TEXT_CHARSMAP_H
#define KILN_TEXT_CHARSMAP_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct charsmap {
    uint32_t *units; /* [n_units] trie */
    size_t n_units;
    char *texts; /* [n_texts] replacements, UTF-8, each with a NUL at its end */
    size_t n_texts;
    bool keeps[128]; /* characters of ASCII that begin nothing that is replaced */
};

/* Copies the table of n bytes: the trie's size in bytes, 4 bytes, low first; the trie; the replacements.
 * STATUS_DATA: it is cut short or damaged. */
struct status charsmap_init(struct charsmap *c, const void *bytes, size_t n, const char *source);

/* The same from base64 (RFC 4648). */
struct status charsmap_init_base64(struct charsmap *c, const char *text, size_t n, const char *source);

/* Safe on a zeroed struct. */
void charsmap_fini(struct charsmap *c);

/* A beginning of a text that is replaced. */
struct charsmap_match {
    size_t n;         /* its bytes; 0: there is none */
    const char *text; /* [n_text] what replaces it; borrowed */
    size_t n_text;
};

/* The shortest or the longest beginning of text[0..n) that is replaced. */
struct charsmap_match charsmap_find(const struct charsmap *c, const char *text, size_t n, bool longest);

#endif
