/* zero_shot: labels of the caller, by a classifier of pairs that knows entailment: whether a text entails
 * "This example is LABEL." (Yin et al. 2019, arXiv:1909.00161).  Scores are those of transformers'
 * pipeline. */
#ifndef KILN_SERVE_ZERO_SHOT_H
#define KILN_SERVE_ZERO_SHOT_H

#include "core/buf.h"
#include "serve/class_logits.h"

#define ZERO_SHOT_TEMPLATE "This example is {}."

struct zero_shot_rule {
    bool multi_label;             /* each label is scored alone */
    int64_t entails, contradicts; /* labels of the model */
};

/* Finds the model's label that begins with "entail"; of what contradicts, the first or, if that is
 * entailment, the last, as the pipeline takes it.  False: the model has no such label. */
bool zero_shot_find(struct zero_shot_rule *z, const struct model_labels *model);

/* Appends the template with the label instead of its "{}", which it must have. */
void zero_shot_append_hypothesis(struct buf *out, const char *template, const char *label);

/* The scores of the labels of a text, [n_labels], the best first: text i with label k is pair i * n_labels
 * + k of the logits. */
void zero_shot_score(struct class_reading *out, const struct zero_shot_rule *z, const struct class_logits *l,
                     size_t text, size_t n_labels);

#endif
