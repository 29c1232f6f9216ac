/* wordpiece_train: a vocabulary from the user's own text.
 *
 * Words are counted as the tokenizer sees them (text/word_counter.h); then the most frequent pair of
 * neighbouring pieces is merged into one piece, again and again (byte-pair encoding, Sennrich et al. 2016,
 * arXiv:1508.07909), with "##" before pieces that continue a word.  The rule: the same text gives the same
 * vocabulary on every machine; of pairs that are equally frequent, the one with the lower ids is merged
 * first. The pieces, by id: [PAD] [UNK] [CLS] [SEP] [MASK], the characters, the characters that continue a
 * word, the merges. */
#ifndef KILN_TEXT_WORDPIECE_TRAIN_H
#define KILN_TEXT_WORDPIECE_TRAIN_H

#include "core/buf.h"
#include "core/progress.h"
#include "text/word_tally.h"

struct wordpiece_train_options {
    int64_t vocab_size;    /* pieces wanted; the result has fewer if the text does */
    int64_t min_frequency; /* least occurrences of a character or a merged pair in the text */
    /* characters kept, the most frequent ones; words with others are left out; 0: as coverage says */
    int64_t limit_alphabet;
    /* the share of the text's characters that those kept are, if there is no limit; but at least
     * WORDPIECE_LEAST_ALPHABET are kept */
    double alphabet_coverage;
};

/* Alphabets of letters have fewer characters; Chinese and Japanese have thousands. */
enum { WORDPIECE_LEAST_ALPHABET = 1000 };

struct wordpiece_train_result {
    int64_t n_pieces;
    int64_t n_words;    /* distinct */
    int64_t n_alphabet; /* characters kept */
    double lost;        /* share of the text's characters that are not among them */
};

/* Appends vocab.txt, made from the words of a tally, to `out`.  The tally is emptied as soon as its words are
 * in memory; word_tally_fini must still be called.  STATUS_DATA if it has no word, STATUS_USAGE if vocab_size
 * is too small for the characters, STATUS_MEMORY, STATUS_IO. */
struct status wordpiece_train(struct buf *out, struct wordpiece_train_result *result,
                              struct word_tally *tally, const struct wordpiece_train_options *o,
                              struct progress *progress);

#endif
