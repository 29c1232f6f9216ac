/* sentencepiece_tokenizer: text/sentencepiece.h as a tokenizer (text/tokenizer.h).  Its vocabulary is
 * tokenizer.json or tokenizer.model.  It encodes any bytes; decoding gives back the normalized text. */
#ifndef KILN_TEXT_SENTENCEPIECE_TOKENIZER_H
#define KILN_TEXT_SENTENCEPIECE_TOKENIZER_H

#include "text/sentencepiece.h"
#include "text/tokenizer.h"

extern const struct tokenizer_kind sentencepiece_tokenizer_kind;

/* The model of a tokenizer of this kind, borrowed; NULL: it is of another. */
const struct sentencepiece *sentencepiece_tokenizer_view(const struct tokenizer *t);

/* Whether its file is a tokenizer.model. */
bool sentencepiece_tokenizer_is_model(const struct tokenizer *t);

#endif
