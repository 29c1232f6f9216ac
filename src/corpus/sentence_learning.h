/* sentence_learning: learns where sentences end from the beginning of a corpus, before the pass over it.
 *
 * The rule: what is learned depends on the first SENTENCE_LEARNING_BYTES of text alone, so a run that goes on in
 * the middle of the corpus learns the same. */
#ifndef KILN_CORPUS_SENTENCE_LEARNING_H
#define KILN_CORPUS_SENTENCE_LEARNING_H

#include "corpus/corpus.h"
#include "text/punkt.h"

enum {
    SENTENCE_LEARNING_BYTES = 4 << 20,
    SENTENCE_LEARNING_LEAST_BYTES = 1
                                    << 16 /* of less text nothing is learned: few abbreviations occur twice */
};

/* Sets `p`, zeroed, to what was learned, and leaves the corpus at the place and with the counts that it has.  Errors are those of
 * corpus_pass_run, and STATUS_PREEMPTED after a signal. */
struct status sentence_learning_run(struct corpus *c, struct punkt *p);

#endif
