/* likelihood: how probable a model finds texts: the log-probability of each token of a text, and their sum.
 *
 * A decoder predicts a token from those before it; the first one counts only if a special token stands before
 * it.  A masked model predicts a token from those on both sides of it, so its sum is a pseudo-log-likelihood:
 * each token, one after the other, is replaced by [MASK] and predicted from all others (Salazar et al. 2020,
 * arXiv:1910.14659, equation 1).  Special tokens are read, but not predicted. */
#ifndef KILN_SERVE_LIKELIHOOD_H
#define KILN_SERVE_LIKELIHOOD_H

#include "serve/session.h"

/* Tokens that are masked in addition to the predicted one. */
enum likelihood_masking {
    LIKELIHOOD_TOKEN, /* nothing */
    /* the later tokens of its word, which would give it away (Kauf & Ivanova 2023, arXiv:2305.10588,
     * PLL-word-l2r) */
    LIKELIHOOD_WITHIN_WORD
};

/* By its name in flags: "token" or "within_word". */
enum likelihood_masking likelihood_masking_find(const char *name);

/* Texts as a job (serve/request.h): they are added, then computed together, sorted by length, in batches
 * without padding. */
struct likelihood {
    struct request request;
    const struct session *session;   /* borrowed */
    enum likelihood_masking masking; /* masking of a masked model */
    bool is_decoder;
    struct input_form form;         /* special tokens around a text */
    double *losses;                 /* [ids.n] -log p; NAN: not predicted */
    struct id_list ids;             /* ids of all texts, special tokens included */
    struct buf texts;               /* struct likelihood_text */
    int64_t n;                      /* texts */
    struct likelihood_text **order; /* [n] longest first */
};

/* Begins without texts, in a session of MODEL_TASK_MASKED_LM, where with BATCHING_FEW_ASKED a batch has many
 * sequences, or of MODEL_TASK_CAUSAL_LM with BATCHING_LOSSES.  STATUS_DATA: a masked model's tokenizer has no
 * mask token. */
struct status likelihood_init(struct likelihood *l, const struct session *s, enum likelihood_masking masking);
void likelihood_fini(struct likelihood *l);

/* Puts the token that begins a text before each text that follows, so that a decoder predicts its first token
 * too.  STATUS_DATA: the tokenizer has none. */
struct status likelihood_begin_texts(struct likelihood *l);

/* Adds text number l->n.  STATUS_DATA: it has no token, or more than the model reads. */
struct status likelihood_add(struct likelihood *l, struct tokenizer_scratch *scratch, const char *text,
                             size_t n);

/* Makes the request for all texts.  A text does not depend on the others but for rounding. */
struct status likelihood_make(struct likelihood *l);

/* The natural logarithm for text i, once the request has ended. */
double likelihood_get(const struct likelihood *l, int64_t i);

/* -log p of each token of text i, special ones left out; NAN: a decoder's first token, which is not
 * predicted. */
const double *likelihood_losses(const struct likelihood *l, int64_t i);

/* The number of tokens of text i that are predicted, and whether texts i and k have the same tokens. */
int64_t likelihood_tokens(const struct likelihood *l, int64_t i);
bool likelihood_same_tokens(const struct likelihood *l, int64_t i, int64_t k);

#endif
