/* token_choice: how the next token of a text is chosen, and the rows that pass this to a device (ops.h,
 * choose_tokens). */
#ifndef KILN_SERVE_TOKEN_CHOICE_H
#define KILN_SERVE_TOKEN_CHOICE_H

#include "pass/choice_room.h"

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number that is added to a token's logit. */
struct token_bias {
    int32_t id;
    float add;
};

/* The names and meanings of transformers' GenerationConfig, and of OpenAI's API where that has none: what
 * changes logits, in the order biases, repetition, frequency and presence, temperature; then what leaves only
 * some tokens, in the order top_k, top_p, min_p. */
struct token_choice_options {
    double temperature; /* divides the logits; 0: always the largest */
    int64_t top_k;      /* only the k largest logits; 0: all */
    double top_p;       /* only the most probable tokens whose probabilities sum to p; 1: all */
    /* logits of tokens that were there are divided by it, or multiplied if they are negative; 1: off */
    double repetition_penalty;
    /* only tokens of those left that are at least this part as probable as the most probable; 0: all */
    double min_p;
    /* logits of tokens that were generated, not read, lose the first once and the second each time; 0: off */
    double presence_penalty, frequency_penalty;
    const struct token_bias *biases; /* [n_biases], borrowed; each id once */
    int64_t n_biases;
};

/* The tokens of a text, after which one is chosen: the first n_read were read, the others generated. */
struct token_past {
    const int32_t *ids; /* [n] */
    size_t n_read, n;
};

/* How probable the model finds a token, whatever the options of the choice. */
struct token_probability {
    int32_t id;
    float log_p; /* natural logarithm */
};

/* The question about a row of logits. */
struct token_question {
    int32_t label; /* the token that is rated; -1: one is chosen, with all below */
    int n_rated;   /* tokens whose log p are reported, the row's own first */
    const struct token_choice_options *options; /* borrowed, like the past, until the row was made */
    struct token_past past;
    double random; /* uniform in [0, 1) */
};

/* State of making rows, one group after the other. */
struct token_choice {
    int32_t *changes; /* [n_tokens] 1 + the place of each token's change in the row that is made; else 0 */
    int64_t n_tokens;
    struct choice_parts parts; /* arrays that the rows are written to */
    int64_t n_rows, n_changes;
};

/* Makes a choice for ids below n_tokens; others change nothing.  STATUS_MEMORY.  Fini is safe on a zeroed
 * struct and after a failed init. */
struct status token_choice_init(struct token_choice *c, int64_t n_tokens);
void token_choice_fini(struct token_choice *c);

/* Begins a group of rows. */
void token_choice_begin(struct token_choice *c, struct choice_parts parts);

/* Adds a row; false: its changes do not fit, and nothing was added. The first of a group fits where the
 * arrays hold a change of each token. */
bool token_choice_add(struct token_choice *c, const struct token_question *q);

#endif
