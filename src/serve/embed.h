/* embed: computes vectors of texts, whose angles measure how similar the texts are.  Reimers & Gurevych 2019
 * (arXiv:1908.10084) section 3: the last layer's output, pooled, then the modules that the model's authors
 * added (serve/sentence_model.h). */
#ifndef KILN_SERVE_EMBED_H
#define KILN_SERVE_EMBED_H

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

/* The tokens of texts of which vectors are wanted: a prompt and the text between the special tokens of the
 * model, and no more than the plan reads. */
struct embed_input {
    const struct embed_plan *plan; /* borrowed, like tokenizer */
    const struct tokenizer *tokenizer;
    struct encoded_texts texts;
    int64_t *n_skipped;      /* [texts.n] number of each text's first tokens that are not pooled */
    int64_t *order;          /* [texts.n] order of packing: the shortest first */
    int64_t capacity;        /* texts that can be added */
    int64_t n_skipped_whole; /* tokens not pooled of a text that is not cut */
    struct buf bytes;        /* prompt and text together */
};

/* An input without texts, for n_texts of a session of MODEL_TASK_ENCODER.  STATUS_MEMORY.  Fini is safe on a
 * zeroed struct and after a failed init. */
struct status embed_input_init(struct embed_input *in, const struct session *s,
                               struct tokenizer_scratch *scratch, const struct embed_plan *plan,
                               size_t n_texts);
void embed_input_fini(struct embed_input *in);

/* Appends a text.  STATUS_DATA: the plan cuts nothing, and there are too many tokens; or there are none. */
struct status embed_input_add(struct embed_input *in, struct tokenizer_scratch *scratch,
                              const struct text_bytes *text);

/* Appends a text of ids that its caller has made; special tokens are put around it unless it has them.
 * STATUS_DATA also where an id is not one of the vocabulary. */
struct status embed_input_add_ids(struct embed_input *in, struct tokenizer_scratch *scratch,
                                  const int32_t *ids, size_t n);

/* Texts as a job (serve/request.h), whose result is `vectors` and input.texts.n_cut. */
struct embed_job {
    struct request request;
    struct embed_input input;
    float *vectors;   /* [n_texts, plan->width], or of tokens [input.texts.n_rows, H]; borrowed */
    double *v, *next; /* [max_width] */
    float *row;       /* [H] */
};

/* Makes the job of texts, as embed_texts; the texts are not read after it. */
struct status embed_job_make(struct embed_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                             float *vectors, const struct text_bytes *texts, size_t n_texts,
                             const struct embed_plan *plan);

/* Makes the job of texts that were encoded already; takes `input` over, whatever it returns.  With
 * `of_tokens` the vectors are the last layer's output for each token, special ones included, neither pooled
 * nor scaled: those of text i begin at the row that input.texts says. */
struct status embed_job_make_of(struct embed_job *j, const struct session *s, float *vectors,
                                struct embed_input *input, bool of_tokens);
void embed_job_fini(struct embed_job *j);

/* Computes vectors [n_texts, plan->width], in the plan's session.  Texts are sorted by length, and those that
 * fit a batch run at once; a vector does not depend on the other texts but for rounding.  A text of more than
 * plan->max_length tokens is cut as the plan says, and *n_cut counts those.  STATUS_NUMERIC if the model
 * computes something that is not finite. */
struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct text_bytes *texts,
                          size_t n_texts, const struct embed_plan *plan);

#endif
