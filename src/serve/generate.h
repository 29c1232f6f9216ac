/* generate: a decoder continues prompts, token by token (Radford et al. 2019, section 2).
 *
 * Up to session_options.n_prompts texts are continued at once. In each step a batch has the next token of
 * each, and as much of new prompts as fits; a text that ends frees its place for the next prompt (Yu et al.
 * 2022, Orca, section 4.1). Keys and values of tokens are computed once and kept in pages, which a text takes
 * as it grows; where none is free, the youngest text is put back, and computed again when pages are free
 * (Kwon et al. 2023, arXiv:2309.06180, section 4.5). Complete pages of a beginning that texts have in common
 * are computed once (section 4.4). The rules:
 *   - A text's tokens do not depend on the other texts, on how its prompt was cut, or on what was cached: on
 *     the cpu its logits are the same bits.
 *   - Options, cancellation and failure are a text's own: one that leaves leaves alone, and the others
 *     continue.
 *   - A window that is full is an error or, if asked for, loses the older half of the tokens after its first
 *     ones, to which much attention goes (Xiao et al. 2023, arXiv:2309.17453); the rest is computed again. */
#ifndef KILN_SERVE_GENERATE_H
#define KILN_SERVE_GENERATE_H

#include "core/buf.h"
#include "serve/session.h"
#include "serve/token_choice.h"

struct generate_options {
    int64_t max_new_tokens;
    struct token_choice_options choice;
    bool ignore_eos;          /* continue past the end of a text */
    bool context_shift;       /* where the model's window is full, continue without the older half */
    uint64_t seed;            /* seed of the run; each prompt has a random stream of its own */
    const char *const *stops; /* [n_stops] texts that end a text before them; none is empty */
    int64_t n_stops;
    bool rates;         /* report how probable the model finds each new token */
    bool rates_prompt;  /* report it for tokens of the prompt but the first; max_new_tokens may then be 0 */
    int n_alternatives; /* and for the most probable tokens there: 0 .. GENERATE_ALTERNATIVES of them */
};

enum { GENERATE_ALTERNATIVES = 20 };

/* Why a text ended. */
enum generation_end {
    GENERATION_GOES_ON,
    GENERATION_AT_END,    /* the model ended it */
    GENERATION_AT_STOP,   /* a stop was found */
    GENERATION_AT_LENGTH, /* max_new_tokens */
    GENERATION_CANCELLED,
    GENERATION_FAILED, /* see `status` */
};

/* A prompt and its continuation, which must not move until it has ended. */
struct generation {
    struct id_list ids; /* ids of the prompt, then those that were generated */
    size_t n_prompt;
    int64_t number; /* number of the prompt, for messages */
    uint64_t seed;
    const struct generate_options *options; /* borrowed until it has ended */
    bool cancelled;                         /* may be set between its tokens, by `told` for one */
    enum generation_end end;
    struct status status; /* STATUS_NUMERIC: the model computed something that is not finite */

    /* Text of the new tokens, and its first bytes that no later token changes: complete characters of UTF-8,
     * no beginning of a stop. */
    struct buf text;
    size_t n_settled;

    /* Probabilities, with options.rates or rates_prompt: n_rated rows of 1 + n_alternatives: row i is of
     * token first_rated + i, itself and then the most probable tokens, with id -1 where there are no more. */
    struct token_probability *rated;
    size_t n_rated, first_rated;

    /* generate's: the tokens whose keys and values are kept, and the pages of a text of any length, of which
     * it has n_pages; the request to the model in a step, which computes n_part tokens. */
    size_t n_cached, n_part;
    size_t n_shifted; /* tokens after the first ones that the model does not see any more */
    int32_t *pages;
    int64_t n_pages;
    size_t rated_capacity; /* rows */
    struct request request;
    void *owner; /* the source's own */
    struct generator *generator;
    struct generation *next;
};

/* Encodes the prompt, in any thread; the options are borrowed. STATUS_DATA: it is empty, or with
 * max_new_tokens longer than the model's positions. */
struct status generation_init(struct generation *g, const struct session *s,
                              struct tokenizer_scratch *scratch, const char *text, size_t n,
                              const struct generate_options *o, int64_t number);

/* Begins as generation_init with a prompt of ids, each below the size of the vocabulary. */
struct status generation_init_ids(struct generation *g, const struct session *s, const int32_t *ids, size_t n,
                                  const struct generate_options *o, int64_t number);
void generation_fini(struct generation *g); /* safe on a zeroed struct */

/* Tokens that were computed, and their time: in steps with a part of a prompt, and in steps with new tokens
 * alone. */
struct generate_times {
    int64_t prompt_tokens, prompt_ns;
    int64_t new_tokens, new_ns;
    int64_t n_put_back; /* how often a text lost its pages to an older one */
};

struct generation_source {
    /* The next prompt, borrowed until it has ended; NULL: there is none left or, unless it may wait for
     * one, none yet.  A failure is that of generate, once the texts before have ended. */
    struct status (*next)(void *self, bool may_wait, struct generation **next);

    /* Called after each token of a text, and when it ends without one; a failure, such as that nobody reads
     * the texts any more, ends all. */
    struct status (*told)(void *self, struct generation *g);
    void *self;
};

/* Texts that come and go, and where they are. */
struct generator {
    struct session *s;
    struct generation_source source;
    struct token_choice choice;
    float *changed;             /* [words] logits that a choice has changed */
    struct generation *running; /* the oldest first */
    /* texts that wait for pages: those that were put back, the oldest first, or one that is new */
    struct generation *waiting;
    int64_t n_running, most_running;
    bool exhausted;              /* the source has no more */
    struct status source_status; /* status of `next` */
    struct status told_status;
    struct generate_times times;
};

/* Begins without texts, over a session of MODEL_TASK_CAUSAL_LM.  Fini is safe on a zeroed struct. */
void generator_init(struct generator *r, struct session *s, const struct generation_source *source);
void generator_fini(struct generator *r);

/* Takes prompts while they fit, and computes one step of the texts.  With may_wait the source may wait if
 * nothing else is to be done. *more is false when all texts have ended and the source has no more.  A failure
 * is `told`'s or the device's. */
struct status generator_step(struct generator *r, bool may_wait, bool *more);

/* Generates until all have ended.  `times` may be NULL.  A failure is the source's or the device's. */
struct status generate(struct session *s, const struct generation_source *source,
                       struct generate_times *times);

/* Continues one prompt, and appends what follows it. */
struct status generate_one(struct buf *out, struct session *s, const char *prompt, size_t n,
                           const struct generate_options *o);

#endif
