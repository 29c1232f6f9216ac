/* sentencepiece_model: tokenizer.model, the file of SentencePiece's library: a message of Protocol Buffers
 * with pieces, their scores, and the rules of its normalizer
 * (https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto).
 *
 * The rule: a file that is cut short or damaged, or of a form that would give other ids, is refused. */
#ifndef KILN_TEXT_SENTENCEPIECE_MODEL_H
#define KILN_TEXT_SENTENCEPIECE_MODEL_H

#include "text/sentencepiece.h"

/* Special tokens of the file, by their ids; -1: there is none. */
struct sentencepiece_specials {
    int32_t unknown, begin, end, pad;
};

/* Reads the n bytes of a file.  STATUS_DATA. */
struct status sentencepiece_model_read(struct sentencepiece *p, struct sentencepiece_specials *specials,
                                       const void *bytes, size_t n, const char *source);

#endif
