/* sentencepiece_tokenizer: text/sentencepiece.h as a tokenizer (text/tokenizer.h).  Its vocabulary is
 * tokenizer.json or tokenizer.model.  It encodes any bytes; decoding gives back the normalized text. */
#ifndef KILN_TEXT_SENTENCEPIECE_TOKENIZER_H
#define KILN_TEXT_SENTENCEPIECE_TOKENIZER_H

#include "text/tokenizer.h"

extern const struct tokenizer_kind sentencepiece_tokenizer_kind;

#endif
