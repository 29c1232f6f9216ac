/* token_choice: chooses the next token of a text from the logits of all words, without sorting them all. */
#ifndef KILN_SERVE_TOKEN_CHOICE_H
#define KILN_SERVE_TOKEN_CHOICE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names and meanings of transformers' GenerationConfig. */
struct token_choice_options {
    double temperature; /* divides the logits; 0: always the largest */
    int64_t top_k;      /* only the k largest logits; 0: all */
    double top_p;       /* only the most probable tokens whose probabilities sum to p; 1: all */
    /* logits of tokens that were there are divided by it, or multiplied if they are negative; 1: off */
    double repetition_penalty;
    /* of those left, only tokens at least so probable as this times the most probable; 0: all */
    double min_p;
};

/* A token that may be chosen. */
struct token_candidate {
    float logit, weight; /* the probability is the weight over the sum of all weights */
    int32_t id;
};

/* What choosing writes to; for vocabularies of n tokens. */
struct token_choice {
    struct token_candidate *candidates; /* [n] */
    bool *seen;                         /* [n], false between calls */
    int64_t n;
};

/* STATUS_MEMORY.  Fini is safe on a zeroed struct and after a failed init. */
struct status token_choice_init(struct token_choice *c, int64_t n);
void token_choice_fini(struct token_choice *c);

/* Chooses from logits[0..n), which it overwrites, behind ids[0..n_ids); `random` is uniform in [0, 1).  Of
 * equal logits the smaller id counts as the larger one. */
int32_t token_choose(struct token_choice *c, float *logits, const int32_t *ids, size_t n_ids,
                     const struct token_choice_options *o, double random);

#endif
