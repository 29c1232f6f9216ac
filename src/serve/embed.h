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

/* Computes vectors [n_texts, plan->width], in the plan's session.  Texts are sorted by length, and as many
 * run at once as fit a batch; a vector does not depend on the other texts but for rounding.  A text of more
 * than plan->max_length tokens is cut, and *n_cut counts those.  STATUS_NUMERIC if the model computes
 * something that is not finite. */
struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct text_bytes *texts,
                          size_t n_texts, const struct embed_plan *plan);

#endif
