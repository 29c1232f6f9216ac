/* bpe_split: where byte-level BPE cuts a text into pieces before it merges bytes inside each of them.
 *
 * The rule: the pieces are those that Hugging Face's `tokenizers` finds with the same regular expression.
 *   GPT-2 (Radford et al. 2019, encoder.py):
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   BLOOM (tokenizer.json of bigscience/bloom), where what lies between two matches is a piece too:
 *      ?[^(\s|[.,!?…。，、।۔،])]+
 *     whose class excludes white space, the three characters ( | ) and the punctuation in brackets.
 * The expressions are written out as code, so a piece takes time in proportion to its bytes.  A byte that is
 * part of no character is a character of its own, neither letter, number nor space. */
#ifndef KILN_TEXT_BPE_SPLIT_H
#define KILN_TEXT_BPE_SPLIT_H

#include <stddef.h>

enum bpe_pattern {
    BPE_GPT2,
    BPE_BLOOM,
    BPE_SPLITS /* steps of text/pre_split.h, not one of these two patterns */
};

/* Their names, for a flag's values. */
#define BPE_PATTERN_NAMES   "gpt2|bloom"
#define BPE_PATTERN_DEFAULT "gpt2"

/* GGUF's name of byte-level BPE, and llama.cpp's of a pattern. */
#define BPE_GGUF_MODEL "gpt2"
/* Name of the pattern in GGUF's tokenizer.ggml.pre. */
const char *bpe_pattern_gguf_name(enum bpe_pattern pattern);

/* One of the two patterns as the regular expression of tokenizer.json. */
const char *bpe_pattern_regex(enum bpe_pattern pattern);

/* The pattern of one of these names. */
enum bpe_pattern bpe_pattern_find(const char *name);

/* The end of the piece of text[0..n) that begins at `at` < n. */
size_t bpe_split_end(enum bpe_pattern pattern, const char *text, size_t n, size_t at);

/* The end of the piece as bpe_split_end finds it by GPT-2's pattern, faster, for a piece of ASCII without a
 * NUL that is no contraction and no white space, as most pieces are; 0 for others: call bpe_split_end. */
size_t bpe_split_quick(const char *text, size_t n, size_t at);

#endif
