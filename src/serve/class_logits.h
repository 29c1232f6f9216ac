/* class_logits: the logits of a classifier for texts or for their tokens, kept until all are predicted, and
 * the labels that they mean by the model's problem_type. */
#ifndef KILN_SERVE_CLASS_LOGITS_H
#define KILN_SERVE_CLASS_LOGITS_H

#include "data/encoded_texts.h"
#include "nn/label_names.h"
#include "serve/request.h"

/* Logits of all texts, [n_labels] for each or for each of its tokens. */
struct class_logits {
    const struct encoded_texts *texts;
    int64_t n_labels;
    float *values;
    int64_t *order; /* [texts->n] order of the request: the longest first */
};

/* Allocates the logits and borrows the texts.  STATUS_MEMORY.  Fini is safe on a zeroed struct and after a
 * failed init. */
struct status class_logits_init(struct class_logits *l, const struct encoded_texts *texts, int64_t n_labels);
void class_logits_fini(struct class_logits *l);

/* The logits of text i. */
float *class_logits_get(const struct class_logits *l, int64_t i);

/* The request that fills the logits. */
struct request class_logits_request(struct class_logits *l);

/* A model's prediction for one of its labels. */
struct class_reading {
    int64_t label;
    double logit;
    /* the probability among all labels, or of this one alone (PROBLEM_MULTI_LABEL), or the number itself */
    double score;
    /* the most probable label, the first of equals; or a probability over one half; or a number */
    bool holds;
};

/* Converts the logits of a text, or of a token, to the predictions of the configuration's problem: out
 * [num_labels], in their order. */
void class_logits_read(struct class_reading *out, const float *logits, const struct model_labels *model);

/* Sorts readings by score, the higher first, and equal ones by label. */
void class_logits_sort(struct class_reading *readings, size_t n);

#endif
