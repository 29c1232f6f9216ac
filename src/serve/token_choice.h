/* token_choice: chooses the next token of a text from the logits of all words, without sorting them all, and
 * says how probable tokens are. */
#ifndef KILN_SERVE_TOKEN_CHOICE_H
#define KILN_SERVE_TOKEN_CHOICE_H

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
    /* of those left, only tokens at least so probable as this times the most probable; 0: all */
    double min_p;
    /* logits of tokens that were generated, not read, lose the first once and the second each time; 0: off */
    double presence_penalty, frequency_penalty;
    const struct token_bias *biases; /* [n_biases], borrowed; each id once */
    int64_t n_biases;
};

/* A token that may be chosen. */
struct token_candidate {
    float logit, weight; /* the probability is the weight over the sum of all weights */
    int32_t id;
};

/* What choosing writes to; for vocabularies of n tokens. */
struct token_choice {
    struct token_candidate *candidates; /* [n] */
    int32_t *counts;                    /* [n], 0 between calls */
    int64_t n;
};

/* The tokens of a text, behind which one is chosen: the first n_read were read, the others generated. */
struct token_past {
    const int32_t *ids; /* [n] */
    size_t n_read, n;
};

/* How probable the model finds a token, whatever the options of the choice. */
struct token_probability {
    int32_t id;
    float log_p; /* natural logarithm */
};

/* STATUS_MEMORY.  Fini is safe on a zeroed struct and after a failed init. */
struct status token_choice_init(struct token_choice *c, int64_t n);
void token_choice_fini(struct token_choice *c);

/* Chooses from logits[0..n), which it overwrites; `random` is uniform in [0, 1).  Of equal logits the smaller
 * id counts as the larger one. */
int32_t token_choose(struct token_choice *c, float *logits, struct token_past past,
                     const struct token_choice_options *o, double random);

/* row[0]: of token `id` of n; row[1 .. n_alternatives]: of the most probable of the first n_choices, in their
 * order, with id -1 where there are no more. */
void token_rate(struct token_probability *row, int64_t n_alternatives, const float *logits, int64_t n_choices,
                int64_t n, int32_t id);

#endif
