/* wordpiece_tokenizer: WordPiece (text/wordpiece.h) as a tokenizer (text/tokenizer.h).  Its vocabulary is
 * vocab.txt; its special tokens are BERT's. */
#ifndef KILN_TEXT_WORDPIECE_TOKENIZER_H
#define KILN_TEXT_WORDPIECE_TOKENIZER_H

#include "text/tokenizer.h"

extern const struct tokenizer_kind wordpiece_tokenizer_kind;

/* Reads vocab.txt, whatever its path is, as vocab_open does. */
struct status wordpiece_tokenizer_open(struct tokenizer *t, const char *path, bool lower_case);

/* Reads the text of a vocab.txt from memory, which is copied; `source` names it in messages. */
struct status wordpiece_tokenizer_init(struct tokenizer *t, const char *text, size_t n, const char *source,
                                       bool lower_case);

/* For tokens that another program made with an unknown vocabulary: its file is empty, and it encodes nothing.
 * The padding token is 0, as in BERT's vocabularies. */
void wordpiece_tokenizer_init_unknown(struct tokenizer *t, bool lower_case);

#endif
