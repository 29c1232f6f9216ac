/* bpe_tokenizer: byte-level BPE (text/bpe.h) as a tokenizer (text/tokenizer.h).  Its vocabulary is vocab.json
 * and merges.txt, with GPT-2's pattern, or tokenizer.json, which says the pattern.  It encodes any bytes, and
 * decoding gives them back. */
#ifndef KILN_TEXT_BPE_TOKENIZER_H
#define KILN_TEXT_BPE_TOKENIZER_H

#include "text/bpe.h"
#include "text/tokenizer.h"

extern const struct tokenizer_kind bpe_tokenizer_kind;

/* Reads vocab.json and merges.txt, whatever their paths are. */
struct status bpe_tokenizer_open(struct tokenizer *t, const char *vocab_path, const char *merges_path);

/* Reads tokenizer.json of n bytes, which are copied, and whose top is `root`, with the tokens that were
 * added. */
struct status bpe_tokenizer_init(struct tokenizer *t, struct added_tokens *added, const json_t *root,
                                 const char *text, size_t n, const char *source);

/* The pieces, merges and pattern of a tokenizer; borrowed.  NULL: the tokenizer is of another kind. */
const struct bpe *bpe_tokenizer_view(const struct tokenizer *t);

#endif
