/* eval_tokens: the surprisal of texts, -log p of their tokens, words or sentences, as tables (TSV). */
#ifndef KILN_CMD_EVAL_TOKENS_H
#define KILN_CMD_EVAL_TOKENS_H

#include "cmd/input_paths.h"
#include "serve/likelihood.h"

/* What has a line of the table. */
enum eval_unit { EVAL_TOKENS, EVAL_WORDS, EVAL_SENTENCES };

struct eval_tokens {
    struct session *session; /* as likelihood_init wants it */
    enum eval_unit unit;
    enum likelihood_masking masking;
    bool begins; /* a decoder's texts begin with a special token, and so their first token counts */
    bool bits;   /* logarithms are of base 2; else natural */
    bool prints;
};

/* Prints the header, and the lines of all texts: those of the paths (text_ids_each_line) or, if there are
 * none, the lines of standard input.  STATUS_DATA: a text has no token to predict, or more than the model
 * reads. */
struct status eval_tokens_run(const struct eval_tokens *e, const struct input_paths *paths);

#endif
