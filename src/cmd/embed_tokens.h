/* embed_tokens: the vectors of all tokens of texts, a line of JSON for each token. */
#ifndef KILN_CMD_EMBED_TOKENS_H
#define KILN_CMD_EMBED_TOKENS_H

#include "serve/embed.h"

/* Prints the vectors of texts [n], special tokens included, in the plan's session; `n_before` texts were
 * printed before, and *n_cut counts the texts that were cut. */
struct status embed_tokens_print(struct session *s, const struct embed_plan *plan,
                                 const struct text_bytes *texts, size_t n, int64_t n_before, int64_t *n_cut);

#endif
