/* generate: a decoder goes on with prompts, token by token (Radford et al. 2019, section 2).
 *
 * All prompts that have not ended are one request each turn: sequences of different lengths lie end to end,
 * so nothing is padded, and a prompt's tokens do not depend on those beside it.  Nothing is cached between
 * turns: each computes all tokens of a sequence again, so n tokens take n passes over up to that many. */
#ifndef KILN_SERVE_GENERATE_H
#define KILN_SERVE_GENERATE_H

#include "serve/session.h"

/* The names and meanings of transformers' GenerationConfig. */
struct generate_options {
    int64_t max_new_tokens;
    double temperature; /* divides the logits; 0: always the largest */
    int64_t top_k;      /* only the k largest logits; 0: all */
    double top_p;       /* only the most probable tokens whose probabilities sum to p; 1: all */
    /* logits of tokens that were there are divided by it, or multiplied if they are negative; 1: off */
    double repetition_penalty;
    bool ignore_eos; /* go on past the end of a text */
    uint64_t seed;   /* of the run; each prompt has a stream of its own */
};

struct generation {
    struct id_list ids; /* of the prompt, then those that were generated */
    size_t n_prompt;
    uint64_t seed;
    bool ended; /* it reached the end of a text, or its last token */
};

/* Chooses the next token from logits[0..n), which it overwrites; `random` is uniform in [0, 1). */
int32_t generate_choose(float *logits, int64_t n, const struct generation *g,
                        const struct generate_options *o, double random);

/* Encodes the prompt.  STATUS_DATA: it is empty, or with max_new_tokens longer than the model's positions. */
struct status generation_init(struct generation *g, struct session *s, const char *text, size_t n,
                              const struct generate_options *o, int64_t number);
void generation_fini(struct generation *g); /* safe on a zeroed struct */

/* Called after each token of a generation; a failure ends all. */
typedef struct status generate_told(void *context, const struct generation *g, int64_t number);

/* Generates until all have ended.  STATUS_NUMERIC if the model computes something that is not finite. */
struct status generate(struct session *s, struct generation *generations, int64_t n,
                       const struct generate_options *o, generate_told *told, void *context);

#endif
