/* word_counter: counts the words of a text as BERT's tokenizer sees them, or its pieces as byte-level BPE
 * cuts it, for one thread.
 *
 * Runs of raw text are counted first, so that each distinct one is folded once and not as often as it
 * occurs.  Both tables, of runs and of words, are bounded: full ones are emptied into the next. */
#ifndef KILN_TEXT_WORD_COUNTER_H
#define KILN_TEXT_WORD_COUNTER_H

#include "text/basic_tokenizer.h"
#include "text/bpe_split.h"
#include "text/word_counts.h"
#include "text/word_tally.h"

struct word_counter {
    struct basic_tokenizer basic;
    struct word_counts runs;  /* text between ASCII white space and punctuation, not yet folded */
    struct word_counts words; /* words as the tokenizer sees them */
    int64_t n_punctuation[128];
    struct word_tally *tally;
    bool cuts_pieces; /* text is cut into pieces by the pattern; else words are counted */
    enum bpe_pattern pattern;
    size_t most_words; /* number of words at which `words` is full */
    bool out_of_memory;
    int64_t multiplicity; /* occurrences of the run whose words are being counted */
};

/* Borrows the tally, which gets the counts of `n_threads` counters.  STATUS_MEMORY is its only failure. */
struct status word_counter_init(struct word_counter *c, struct word_tally *tally, bool lower_case,
                                int n_threads);

/* Prepares a counter of the pieces of a pattern; else as word_counter_init.  Pieces of more than
 * WORD_TALLY_MAX_BYTES are not counted. */
struct status word_counter_init_pieces(struct word_counter *c, struct word_tally *tally,
                                       enum bpe_pattern pattern, int n_threads);

/* Safe on a zeroed struct and after a failed init. */
void word_counter_fini(struct word_counter *c);

/* Counts the words of text[0..n), any bytes; a word does not continue from one call to the next.
 * STATUS_MEMORY, or the error of word_tally_take. */
struct status word_counter_add(struct word_counter *c, const char *text, size_t n);

/* Hands all counts to the tally.  Call it once, after the last text. */
struct status word_counter_end(struct word_counter *c);

#endif
