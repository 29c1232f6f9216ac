/* evaluation_words: the sequences of words of evaluation files, and whether a document has one of them.
 *
 * A model that was trained on the text of an evaluation seems better than it is.  Brown et al. 2020 (GPT-3,
 * arXiv:2005.14165, appendix C) call 13 words that training and evaluation share a contamination; words are
 * those of corpus/text_words.h.
 *
 * The rule: of lines of JSON every string is a text, whatever its key; of other files a document is one.
 * Nothing is found in shorter texts. */
#ifndef KILN_CORPUS_EVALUATION_WORDS_H
#define KILN_CORPUS_EVALUATION_WORDS_H

#include "corpus/document.h"
#include "corpus/hash_set.h"
#include "corpus/text_words.h"

struct evaluation_words {
    int n_words;            /* words of a sequence, at most TEXT_WORDS_MOST */
    struct hash_set hashes; /* hashes of the sequences */
    uint64_t hash;          /* hash of all sequences: equal for equal ones */
};

/* Reads files, or folders of them, and says what it found.  STATUS_DATA: a file is not text, or no text has
 * n_words; STATUS_MEMORY. */
struct status evaluation_words_open(struct evaluation_words *e, const char *const *files, int n_files,
                                    int n_words);
void evaluation_words_close(struct evaluation_words *e); /* safe on a zeroed struct */

/* Whether the document, or piece, has one of the sequences.  Any number of threads may ask. */
bool evaluation_words_occur(const struct evaluation_words *e, const struct document *d);

#endif
