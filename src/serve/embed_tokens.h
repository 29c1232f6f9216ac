/* embed_tokens: the last layer's output for each token of texts, special ones included, neither pooled nor
 * scaled: of TEI's /embed_all. */
#ifndef KILN_SERVE_EMBED_TOKENS_H
#define KILN_SERVE_EMBED_TOKENS_H

#include "serve/embed_input.h"

/* Texts as a job (serve/request.h), whose result is `rows`: those of text i begin at the row that
 * input.texts says. */
struct embed_tokens_job {
    struct request request;
    struct embed_input input;
    float *rows; /* [texts.n_rows, width] */
    int64_t width;
};

/* Takes the texts over, whatever it returns. */
struct status embed_tokens_job_make(struct embed_tokens_job *j, const struct session *s,
                                    struct embed_input *input);
void embed_tokens_job_fini(struct embed_tokens_job *j);

#endif
