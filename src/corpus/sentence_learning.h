/* sentence_learning: learns where sentences end from the beginning of a corpus, before the pass over it.
 *
 * The rule: the result depends on the first SENTENCE_LEARNING_BYTES of text alone, or, where most of the
 * input becomes no text, on the text in the first SENTENCE_LEARNING_INPUT_BYTES of the input.  So a run that
 * resumes in the middle of the corpus learns the same, and learning ends soon, whatever the corpus is. */
#ifndef KILN_CORPUS_SENTENCE_LEARNING_H
#define KILN_CORPUS_SENTENCE_LEARNING_H

#include "corpus/corpus.h"
#include "text/punkt.h"

enum {
    SENTENCE_LEARNING_BYTES = 4 << 20,
    SENTENCE_LEARNING_LEAST_BYTES = 1 << 16 /* less text teaches nothing: few abbreviations occur twice */
};

/* Unpacked.  The first 6 MB of a dump of English Wikipedia are text to 42 %, so about 10 MB of it are
 * read. */
#define SENTENCE_LEARNING_INPUT_BYTES (UINT64_C(64) * SENTENCE_LEARNING_BYTES)

/* Sets `p`, zeroed, to the learned model, and leaves the corpus at the place and with the counts that it has.
 * At most about `input_bytes` of the input are read, SENTENCE_LEARNING_INPUT_BYTES but in tests.  Errors are
 * those of corpus_pass_run, and STATUS_PREEMPTED after a signal. */
struct status sentence_learning_run(struct corpus *c, struct punkt *p, uint64_t input_bytes);

#endif
