/* embed_plan: how vectors of texts are made: what a model's files say (serve/sentence_model.h), with a
 * caller's changes. */
#ifndef KILN_SERVE_EMBED_PLAN_H
#define KILN_SERVE_EMBED_PLAN_H

#include "core/buf.h"
#include "data/encoded_texts.h"
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
    enum text_cut cut;
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
    enum text_cut cut;
    int64_t width, max_width; /* width of a vector, and its largest width on the way through the modules */
};

/* Makes the plan of a session opened for MODEL_TASK_ENCODER.  STATUS_USAGE: the model does not support the
 * options. */
struct status embed_plan_make(struct embed_plan *p, const struct session *s, const struct embed_options *o);

/* Appends the plan in words: "pooling cls, normalised, at most 512 tokens". */
void embed_plan_describe(struct buf *out, const struct embed_plan *p);

#endif
