/* sentencepiece_json: tokenizer.json of a model with SentencePiece's pieces: "BPE" with byte fallback, as
 * Llama's and Mistral's, and "Unigram", as XLM-R's and CamemBERT's.
 *
 * The rule: a setting that would give other ids than text/sentencepiece.h is refused, and the error names
 * it. */
#ifndef KILN_TEXT_SENTENCEPIECE_JSON_H
#define KILN_TEXT_SENTENCEPIECE_JSON_H

#include "text/sentencepiece.h"

/* Whether tokenizer.json, whose top is `root`, is of such a model. */
bool sentencepiece_json_is(const json_t *root);

/* Reads it, with the tokens that were added.  STATUS_DATA: the first setting that is not honoured, or what
 * bpe_merges.h says of the vocabulary. */
struct status sentencepiece_json_read(struct sentencepiece *p, struct added_tokens *added, const json_t *root,
                                      const char *source);

#endif
