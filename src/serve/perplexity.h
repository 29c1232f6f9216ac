/* perplexity: how well a decoder predicts a text: the mean of -log p of tokens, each from those before it.
 *
 * A text that is longer than the context is read in windows that begin every `stride` tokens; a token counts
 * once, in the first window that predicts it.  With a stride below the context each token but the first ones
 * has at least context - stride tokens before it, at context / stride times the work.  The first token of a
 * text has none, and does not count.  Bits a byte compare models of different vocabularies.
 */
#ifndef KILN_SERVE_PERPLEXITY_H
#define KILN_SERVE_PERPLEXITY_H

#include "serve/session.h"

struct perplexity {
    int64_t context, stride; /* tokens */
    int64_t n_tokens;        /* tokens that were predicted */
    int64_t n_bytes;         /* bytes of those tokens */
    double nats;             /* the sum of -log p */
};

/* Begins without tokens.  STATUS_USAGE: the context is longer than the model's positions, or the stride than
 * the context. */
struct status perplexity_init(struct perplexity *p, const struct session *s, int64_t context, int64_t stride);

/* A document as a job (serve/request.h) of a session with BATCHING_LOSSES, which adds to `p` as the packer
 * hands out the rows.  It borrows the ids until its request has ended, and owns nothing. */
struct perplexity_job {
    struct request request;
    struct perplexity *p;
    const int32_t *ids;
    int64_t n;
};

/* Makes the job of ids[n], whose tokens after the first are n_bytes of text.  STATUS_DATA: there are fewer
 * than two. */
struct status perplexity_job_make(struct perplexity_job *j, struct perplexity *p, const int32_t *ids,
                                  int64_t n, int64_t n_bytes);

/* Adds a document that was encoded, ids[n], whose tokens after the first are n_bytes of text, in a session
 * with BATCHING_LOSSES.  STATUS_DATA: it has fewer than two tokens; STATUS_NUMERIC: the model computes
 * something that is not finite. */
struct status perplexity_add_ids(struct perplexity *p, struct session *s, const int32_t *ids, int64_t n,
                                 int64_t n_bytes);

/* Adds what another one counted. */
void perplexity_join(struct perplexity *p, const struct perplexity *other);

/* Nats a token, and bits a byte. */
double perplexity_nats(const struct perplexity *p);
double perplexity_bits(const struct perplexity *p);

#endif
