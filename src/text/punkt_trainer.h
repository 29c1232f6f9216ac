/* punkt_trainer: learns a struct punkt from text, paragraph by paragraph.
 *
 * Counts words, and remembers the pairs across full stops; at the end, log-likelihood ratios show
 * abbreviations, pairs that belong together, and words that begin sentences.
 * Source: Kiss & Strunk 2006 (doi:10.1162/coli.2006.32.4.485), with the constants of NLTK's PunktTrainer.
 *
 * The rule: the learned model depends on the text alone, not on addresses or threads.  Memory is bounded: at
 * most PUNKT_TRAINER_WORDS different words, twice that with their stems, and PUNKT_TRAINER_PAIRS pairs, so
 * under 500 MB for any text.  Words that come when a table is full are counted, but nothing is learned of
 * them. */
#ifndef KILN_TEXT_PUNKT_TRAINER_H
#define KILN_TEXT_PUNKT_TRAINER_H

#include "text/punkt.h"

enum { PUNKT_TRAINER_WORDS = 1 << 20, PUNKT_TRAINER_PAIRS = 1 << 22 };

struct punkt_trainer_pair;
struct punkt_trainer_facts;

struct punkt_trainer {
    struct word_counts words;
    struct punkt_trainer_facts *facts; /* [n_facts] of each word */
    size_t n_facts, facts_capacity;
    struct punkt_trainer_pair *pairs; /* [n_pairs] a word with a full stop, and the next */
    size_t n_pairs, pairs_capacity;
    int64_t n_tokens;      /* words, each time that they occur */
    int64_t n_with_stop;   /* ... that end in a full stop */
    int64_t n_ends;        /* ... that are one . ? or !, or a number with a full stop: they end sentences */
    struct punkt_word now; /* scratch */
    uint32_t before;       /* index of the word before, whose end is: */
    enum { PUNKT_BEFORE_INSIDE, PUNKT_BEFORE_END, PUNKT_BEFORE_STOP, PUNKT_BEFORE_UNKNOWN_STOP } before_end;
};

/* A zeroed struct has read nothing. */
void punkt_trainer_fini(struct punkt_trainer *t);

/* Reads a paragraph. */
struct status punkt_trainer_add(struct punkt_trainer *t, const char *text, size_t n);

/* Sets `p`, zeroed, to the learned model; after it the trainer can only be ended. */
struct status punkt_trainer_finish(struct punkt_trainer *t, struct punkt *p);

#endif
