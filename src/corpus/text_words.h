/* text_words: the words of a text, and sequences of them, as near duplicates, measures of quality and
 * decontamination compare them.
 *
 * The rule: letters and digits in a row are a word; a Chinese, Japanese or Korean character is one by itself.
 * Case of ASCII, white space and punctuation do not count. */
#ifndef KILN_CORPUS_TEXT_WORDS_H
#define KILN_CORPUS_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_word {
    uint64_t hash;
    size_t n_bytes, n_chars; /* bytes and code points */
};

/* The next word of text[0..n), UTF-8, from *at = 0 on; false after the last. */
bool text_words_next(struct text_word *word, size_t *at, const char *text, size_t n);

/* The most words of a sequence. */
enum { TEXT_WORDS_MOST = 64 };

/* The last words; a zeroed struct has none. */
struct text_words {
    uint64_t last[TEXT_WORDS_MOST]; /* hashes, by number % TEXT_WORDS_MOST */
    int64_t n;                      /* words so far */
};

/* Appends a word. */
void text_words_add(struct text_words *w, uint64_t hash);

/* The hash of the last `count` words, of which there are so many; never 0. */
uint64_t text_words_hash(const struct text_words *w, int count);

#endif
