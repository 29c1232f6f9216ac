/* basic_tokenizer: text to words, as BERT's BasicTokenizer does: control characters vanish, each ideograph is
 * a word, case and accents are folded if asked, white space separates words, each punctuation character is a
 * word.
 *
 * The rule: words and offsets equal those of BertNormalizer followed by BertPreTokenizer of Hugging Face's
 * `tokenizers`, for any bytes; ill-formed UTF-8 vanishes, as U+FFFD does there.
 * Source: Devlin et al. 2018, tokenization.py; The Unicode Standard, chapter 3.11 for the order of marks. */
#ifndef KILN_TEXT_BASIC_TOKENIZER_H
#define KILN_TEXT_BASIC_TOKENIZER_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { BASIC_WORD_MAX_CHARS = 100 }; /* BERT's max_input_chars_per_word: longer words are unknown */

struct basic_span {
    size_t start, end; /* bytes of the original text */
};

struct basic_word {
    char text[BASIC_WORD_MAX_CHARS * 4 + 4]; /* normalised, UTF-8; of too long a word, its beginning */
    size_t n_bytes;
    int n_chars;                                    /* BASIC_WORD_MAX_CHARS + 1 for any too long word */
    uint16_t char_starts[BASIC_WORD_MAX_CHARS + 1]; /* [n_chars] offset of each character in text */
    struct basic_span spans[BASIC_WORD_MAX_CHARS];  /* [n_chars] where each character came from */
    struct basic_span whole;                        /* from the first character to the last */
};

/* The treatment of an ASCII byte; other bytes belong to runs. */
enum basic_kind { BASIC_RUN, BASIC_SPACE, BASIC_PUNCTUATION };
extern const uint8_t basic_kinds[256];

/* The effect of a code point on the words around it. */
enum basic_role {
    BASIC_PART,      /* belongs to a word, or to none; that may depend on the characters around it */
    BASIC_ALONE,     /* is a word of its own in any context */
    BASIC_SEPARATES, /* is white space */
};

/* Scratch of one thread. */
struct basic_tokenizer {
    bool lower_case; /* lower case, and strip accents */
    bool out_of_memory;
    struct basic_word word;
    struct basic_mark *marks; /* marks that wait for the end of their sequence, to be ordered */
    size_t n_marks, marks_capacity;
    struct basic_span *sources; /* spans of the decomposed characters, in the order of the text */
    size_t n_sources, sources_capacity, next_source;
    struct basic_span last_source;
    uint32_t *folds; /* [65536] what to do with each code point, filled when it is first met; 0: not yet */
    void (*on_word)(void *context, const struct basic_word *word);
    void *context;
};

/* STATUS_MEMORY is its only failure. */
struct status basic_tokenizer_init(struct basic_tokenizer *b, bool lower_case);
void basic_tokenizer_fini(struct basic_tokenizer *b);

/* Calls on_word for each word of text[0..n), in order; spans are counted from `offset`.  The text must begin
 * and end at white space, punctuation or an end of the complete text, so that its words do not depend on the
 * text around it.  False if memory ran out for a sequence of marks. */
bool basic_tokenizer_words(struct basic_tokenizer *b, const char *text, size_t n, size_t offset,
                           void (*on_word)(void *context, const struct basic_word *word), void *context);

/* The word of text[0..n), for the common case: a run of letters of which none is to be ordered, so the result
 * is one word, or none, of at most BASIC_WORD_MAX_CHARS characters.  False for all other text;
 * basic_tokenizer_words is for that. */
enum { BASIC_FOLD_BYTES = BASIC_WORD_MAX_CHARS * 4 };
bool basic_tokenizer_fold(struct basic_tokenizer *b, char out[BASIC_FOLD_BYTES], size_t *n_out,
                          const char *text, size_t n);

/* Text may be cut on both sides of a code point that is not BASIC_PART: its words stay the same. */
enum basic_role basic_tokenizer_role(struct basic_tokenizer *b, uint32_t c);

#endif
