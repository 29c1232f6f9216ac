/* wordpiece_train: a vocabulary from the user's own text.
 *
 * Words are counted as the tokenizer sees them; then the most frequent pair of neighbouring pieces is merged
 * into one piece, again and again (byte-pair encoding, Sennrich et al. 2016, arXiv:1508.07909), with "##"
 * before pieces that continue a word.  The rule: the same text gives the same vocabulary on every machine; of
 * pairs that are equally frequent, the one with the lower ids is merged first. The pieces, by id: [PAD] [UNK]
 * [CLS] [SEP] [MASK], the characters, the characters that continue a word, the merges. */
#ifndef KILN_TEXT_WORDPIECE_TRAIN_H
#define KILN_TEXT_WORDPIECE_TRAIN_H

#include "core/buf.h"
#include "core/progress.h"
#include "text/basic_tokenizer.h"
#include "text/word_counts.h"

struct wordpiece_train {
    struct basic_tokenizer basic;
    struct word_counts runs;  /* raw text between ASCII white space and punctuation, not yet folded */
    struct word_counts words; /* as the tokenizer sees them */
    int64_t n_punctuation[128];
    bool out_of_memory;
    int64_t multiplicity; /* of the run whose words are being counted */
};

struct wordpiece_train_options {
    int64_t vocab_size;     /* pieces wanted; the result has fewer if the text does */
    int64_t min_frequency;  /* of a character or a merged pair in the text */
    int64_t limit_alphabet; /* characters kept, the most frequent ones; words with others are left out */
};

struct status wordpiece_train_init(struct wordpiece_train *t, bool lower_case);
void wordpiece_train_fini(struct wordpiece_train *t);

/* Counts the words of text[0..n), any bytes; a word does not continue from one call to the next. */
struct status wordpiece_train_add(struct wordpiece_train *t, const char *text, size_t n);

/* Appends vocab.txt to `out` and sets the number of its pieces.  STATUS_DATA if no word was counted,
 * STATUS_USAGE if vocab_size is too small for the characters. */
struct status wordpiece_train_finish(struct wordpiece_train *t, struct buf *out, int64_t *n_pieces,
                                     const struct wordpiece_train_options *o, struct progress *progress);

#endif
