/* generate: a decoder goes on with prompts, token by token (Radford et al. 2019, section 2).
 *
 * Up to session_options.n_prompts texts are continued at once.  In each turn a batch has the next token of
 * each, and as much of new prompts as fits; a text that ends makes room for the next prompt (Yu et al.
 * 2022, Orca, section 4.1).  Keys and values of tokens are computed once and kept in pages.  The rule: a
 * text's tokens do not depend on those beside it, on how its prompt was cut, or on what was cached: on the
 * cpu its logits are the same bits. */
#ifndef KILN_SERVE_GENERATE_H
#define KILN_SERVE_GENERATE_H

#include "core/buf.h"
#include "serve/session.h"
#include "serve/token_choice.h"

struct generate_options {
    int64_t max_new_tokens;
    struct token_choice_options choice;
    bool ignore_eos;          /* go on past the end of a text */
    uint64_t seed;            /* of the run; each prompt has a stream of its own */
    const char *const *stops; /* [n_stops] texts that end a text before them; none is empty */
    int64_t n_stops;
};

/* Why a text ended. */
enum generation_end {
    GENERATION_GOES_ON,
    GENERATION_AT_END,    /* the model ended it */
    GENERATION_AT_STOP,   /* a stop was found */
    GENERATION_AT_LENGTH, /* max_new_tokens */
};

/* A prompt and its continuation. */
struct generation {
    struct id_list ids; /* of the prompt, then those that were generated */
    size_t n_prompt;
    int64_t number; /* of the prompt, for messages */
    uint64_t seed;
    enum generation_end end;

    /* What the new tokens say, and its first bytes that no later token changes: whole characters of UTF-8, no
     * beginning of a stop. */
    struct buf text;
    size_t n_settled;

    /* generate's: the tokens whose keys and values are kept, in these pages. */
    size_t n_cached;
    int32_t *pages;
    int64_t n_pages;
    struct generation *next;
};

/* Encodes the prompt.  STATUS_DATA: it is empty, or with max_new_tokens longer than the model's positions. */
struct status generation_init(struct generation *g, struct session *s, const char *text, size_t n,
                              const struct generate_options *o, int64_t number);
void generation_fini(struct generation *g); /* safe on a zeroed struct */

/* What was computed, and in which time: turns with a part of a prompt, and those with new tokens alone. */
struct generate_times {
    int64_t prompt_tokens, prompt_ns;
    int64_t new_tokens, new_ns;
};

/* Where prompts come from. */
struct generation_source {
    /* The next prompt, borrowed until it has ended; NULL: there is none left or, unless it may wait for
     * one, none yet.  A failure is that of generate, once the texts before have ended. */
    struct status (*next)(void *self, bool may_wait, struct generation **next);

    /* Called after each token of a text; a failure ends all. */
    struct status (*told)(void *self, struct generation *g);
    void *self;
};

/* Generates until all have ended.  `times` may be NULL.  STATUS_NUMERIC if the model computes something
 * that is not finite. */
struct status generate(struct session *s, const struct generation_source *source,
                       const struct generate_options *o, struct generate_times *times);

#endif
