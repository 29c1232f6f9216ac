/* bpe_json: the files of a byte-level BPE vocabulary: vocab.json with merges.txt (Radford et al. 2019), or
 * tokenizer.json, which holds both (https://github.com/huggingface/tokenizers).
 *
 * The rule: a setting that would give other ids than text/bpe.h is refused, and the error names it. */
#ifndef KILN_TEXT_BPE_JSON_H
#define KILN_TEXT_BPE_JSON_H

#include "text/added_tokens.h"
#include "text/bpe.h"

/* Reads the lines of merges.txt, of which the first may be "#version: ...", into merges whose pieces are
 * there. STATUS_DATA with the number of the line. */
struct status bpe_json_read_merges(struct bpe_merges *m, const char *text, size_t n, const char *source);

/* The keys of a BPE model that would change ids: STATUS_DATA unless they are not set. */
struct status bpe_json_check_neutral(const json_t *model, const char *source);

/* Reads the "merges" of tokenizer.json, pairs or texts with a space between them. */
struct status bpe_json_read_merge_list(struct bpe_merges *m, const json_t *merges, const char *source);

/* Whether tokenizer.json, whose top is `root`, is of a byte-level BPE. */
bool bpe_json_is_bpe(const json_t *root);

/* Reads tokenizer.json with the tokens that were added.  STATUS_DATA: the first setting that is not honoured,
 * or what bpe_merges.h says of the vocabulary. */
struct status bpe_json_read(struct bpe *bpe, struct added_tokens *added, const json_t *root,
                            const char *source);

/* The contents of tokenizer.json for pieces, an object from texts to ids; merges, an array of pairs of texts;
 * and special tokens among the pieces, a list that ends with NULL.  Borrows them; the caller json_decref's
 * the result, which is NULL if memory runs out. */
json_t *bpe_json_make(json_t *pieces, json_t *merges, const char *const *specials, enum bpe_pattern pattern);

#endif
