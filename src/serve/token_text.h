/* token_text: tokens as text, as the crate `tokenizers` puts it together, so that clients find what
 * transformers gives them: WordPiece's pieces with a space before each that begins a word, but for . ? ! and
 * a comma.  tokenizer_decode is for reading: it closes up other punctuation too. */
#ifndef KILN_SERVE_TOKEN_TEXT_H
#define KILN_SERVE_TOKEN_TEXT_H

#include "text/tokenizer.h"

/* Appends a piece of WordPiece after others, or as the first. */
void token_text_append_piece(struct buf *out, const char *piece, size_t n, bool is_first);

/* Appends ids[0..n) of the vocabulary, without special tokens if they are to be left out. */
void token_text_append(struct buf *out, const struct tokenizer *t, const int32_t *ids, size_t n,
                       bool skips_special);

/* The text as a JSON string; takes the text over.  NULL if memory runs out. */
json_t *token_text_to_json(struct buf *text);

#endif
