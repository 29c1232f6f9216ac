/* embed: computes vectors of texts, whose angles measure how similar the texts are.  Reimers & Gurevych 2019
 * (arXiv:1908.10084) section 3: the last layer's output, pooled, then the modules that the model's authors
 * added (serve/sentence_model.h). */
#ifndef KILN_SERVE_EMBED_H
#define KILN_SERVE_EMBED_H

#include "serve/embed_input.h"

/* Texts as a job (serve/request.h), whose result is `vectors` and input.texts.n_cut. */
struct embed_job {
    struct request request;
    struct embed_input input;
    float *vectors;   /* [n_texts, plan->width], borrowed */
    double *v, *next; /* [max_width] */
    float *row;       /* [H] */
};

/* Makes the job of texts, as embed_texts; the texts are not read after it. */
struct status embed_job_make(struct embed_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                             float *vectors, const struct text_bytes *texts, size_t n_texts,
                             const struct embed_plan *plan);

/* Makes the job of texts that were encoded already; takes `input` over, whatever it returns. */
struct status embed_job_make_of(struct embed_job *j, const struct session *s, float *vectors,
                                struct embed_input *input);
void embed_job_fini(struct embed_job *j);

/* Computes vectors [n_texts, plan->width], in the plan's session.  Texts are sorted by length, and those that
 * fit a batch run at once; a vector does not depend on the other texts but for rounding.  A text of more than
 * plan->max_length tokens is cut as the plan says, and *n_cut counts those.  STATUS_NUMERIC if the model
 * computes something that is not finite. */
struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct text_bytes *texts,
                          size_t n_texts, const struct embed_plan *plan);

/* Texts as a job whose result is the last layer's output for each token, special ones included, neither
 * pooled nor scaled, `rows`: those of text i begin at the row that input.texts says. */
struct embed_tokens_job {
    struct request request;
    struct embed_input input;
    float *rows; /* [texts.n_rows, width] */
    int64_t width;
};

/* Makes the job of texts that were encoded already; takes `input` over, whatever it returns. */
struct status embed_tokens_job_make(struct embed_tokens_job *j, const struct session *s,
                                    struct embed_input *input);
void embed_tokens_job_fini(struct embed_tokens_job *j);

#endif
