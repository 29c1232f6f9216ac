/* punkt: where sentences end, as learned from text without labels.
 *
 * A full stop belongs to an abbreviation, an initial or a number, or it ends a sentence, or both.  What was
 * learned of the words on its two sides decides: which words are abbreviations, which often begin a sentence,
 * which pairs belong together, and whether a word occurs with a small letter.
 * Source: Kiss & Strunk 2006, "Unsupervised Multilingual Sentence Boundary Detection", Computational
 * Linguistics 32, sections 3 and 4 (doi:10.1162/coli.2006.32.4.485), as NLTK's PunktSentenceTokenizer has it.
 *
 * The rule: an answer depends on the two words and on the learned model, and reading changes nothing, so that
 * threads share one. */
#ifndef KILN_TEXT_PUNKT_H
#define KILN_TEXT_PUNKT_H

#include "text/punkt_word.h"
#include "text/word_counts.h"

/* Facts that were learned of a word, as bits. */
enum {
    PUNKT_ABBREVIATION = 1,   /* abbreviation, of a word without the full stop at its end */
    PUNKT_STARTER = 2,        /* often begins a sentence */
    PUNKT_BEGINS_UPPER = 4,   /* occurred with a capital where a sentence begins */
    PUNKT_INSIDE_UPPER = 8,   /* ... and inside one */
    PUNKT_UNKNOWN_UPPER = 16, /* ... and where neither is known */
    PUNKT_BEGINS_LOWER = 32,
    PUNKT_INSIDE_LOWER = 64,
    PUNKT_UNKNOWN_LOWER = 128,
    PUNKT_UPPER_BITS = PUNKT_BEGINS_UPPER | PUNKT_INSIDE_UPPER | PUNKT_UNKNOWN_UPPER,
    PUNKT_LOWER_BITS = PUNKT_BEGINS_LOWER | PUNKT_INSIDE_LOWER | PUNKT_UNKNOWN_LOWER,
};

/* Zeroed: nothing was learned, and a list of English abbreviations answers. */
struct punkt {
    bool has_learned;
    struct word_counts words; /* a word's bits as its count; one with no bits that matter is not here */
    struct word_counts pairs; /* "first second": pairs across a full stop that belong together */
};

/* Frees the model; safe on a zeroed struct. */
void punkt_fini(struct punkt *p);

/* Whether a sentence ends after `word` when `next` follows in the same paragraph; true for a question mark
 * and the like, false for a word without a full stop.  `p` may be NULL: nothing was learned. */
bool punkt_ends_sentence(const struct punkt *p, const struct punkt_word *word, const struct punkt_word *next);

/* Whether a word, in lower case and without its full stop, is a common English abbreviation, whatever was
 * learned.  Text that writes both Mr and Mr. teaches that mr is a word. */
bool punkt_knows(const char *word, size_t n);

#endif
