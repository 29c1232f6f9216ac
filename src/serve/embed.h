/* embed: turns texts into vectors whose angles tell how similar the texts are.  Reimers & Gurevych 2019
 * (arXiv:1908.10084) section 3: the last layer's output, pooled, then the modules that the model's authors
 * added (serve/sentence_model.h). */
#ifndef KILN_SERVE_EMBED_H
#define KILN_SERVE_EMBED_H

#include "core/buf.h"
#include "serve/session.h"

enum embed_choice { EMBED_AS_MODEL, EMBED_YES, EMBED_NO };

/* A caller's changes to what the model's files say; all zero: none. */
struct embed_options {
    enum embed_choice has_pooling; /* EMBED_YES: `pooling`, instead of the model's */
    enum sentence_pooling pooling;
    enum embed_choice normalize; /* scaled to length 1, at the end; a vector of zeros stays */
    const char *prompt;          /* put before each text, "" for none; NULL: that of prompt_name */
    const char *prompt_name;     /* one of the model's; NULL: the one it uses by default */
    int64_t max_length;          /* tokens of a text, special ones included; 0: as the model's files say */
    int64_t truncate_dim; /* the first numbers of a vector that are kept; 0: as the model's files say */
};

/* How vectors are made; pointers are into the model or the options. */
struct embed_plan {
    enum sentence_pooling poolings[SENTENCE_N_POOLINGS];
    int n_poolings;
    bool skips_prompt, lower_case;
    const struct sentence_layer *layers[SENTENCE_MAX_LAYERS + 2];
    struct sentence_layer truncation; /* the caller's, viewed by layers: a plan is not copied */
    int n_layers;
    const char *prompt;
    int64_t max_length;
    int64_t width, max_width; /* of a vector, and the largest on its way through the modules */
};

/* Of a session opened for MODEL_TASK_ENCODER.  STATUS_USAGE: the model does not support the options. */
struct status embed_plan_make(struct embed_plan *p, const struct session *s, const struct embed_options *o);

/* Appends it in words: "pooling cls, normalised, at most 512 tokens". */
void embed_plan_describe(struct buf *out, const struct embed_plan *p);

/* Texts as a job (serve/request.h), whose result is `vectors` and n_cut. */
struct embed_job {
    struct request request;
    const struct embed_plan *plan; /* borrowed, like form and vectors */
    const struct input_form *form;
    float *vectors; /* [n_texts, plan->width] */
    int64_t n_cut;  /* texts of too many tokens */

    struct id_list ids;         /* of all texts, special tokens included */
    struct embed_piece *pieces; /* [n_texts] of the ids, by length */
    int64_t n_skipped;          /* tokens at the beginning of a text that are not pooled */
    struct buf bytes;           /* of a text after its prompt */
    double *v, *next;           /* [max_width] */
    float *row;                 /* [H] */
};

/* As embed_texts; the texts are not read after it. */
struct status embed_job_make(struct embed_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                             float *vectors, const struct text_bytes *texts, size_t n_texts,
                             const struct embed_plan *plan);
void embed_job_fini(struct embed_job *j);

/* Computes vectors [n_texts, plan->width], in the plan's session.  Texts are sorted by length, and as many
 * run at once as fit a batch; a vector does not depend on the other texts but for rounding.  A text of more
 * than plan->max_length tokens is cut, and *n_cut counts those.  STATUS_NUMERIC if the model computes
 * something that is not finite. */
struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct text_bytes *texts,
                          size_t n_texts, const struct embed_plan *plan);

#endif
