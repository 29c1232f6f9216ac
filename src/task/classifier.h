/* classifier: what `kiln classify` and `kiln tag` share beyond fine-tuning itself: the source of labels,
 * logits kept until all texts are predicted, metrics. */
#ifndef KILN_TASK_CLASSIFIER_H
#define KILN_TASK_CLASSIFIER_H

#include "data/labelled_texts.h"
#include "data/score_list.h"
#include "task/finetune.h"

/* Whether the model has the head of this task, and so labels.  STATUS_DATA: its classifier is of another
 * kind. */
struct status classifier_find(const struct finetune *f, enum bert_task task, bool *has);

/* Configures a new head with these labels, borrowed, and logs them. */
void classifier_set_labels(struct finetune *f, const struct label_names *labels, enum bert_problem problem);

/* AdamW as `transformers` had it before its version 5: bias correction, eps 1e-8. */
void classifier_set_optimizer(struct optimizer *o, double weight_decay);

/* The logits of all texts: [n_labels] for each text, or for each of its tokens. */
struct classifier_logits {
    const struct labelled_texts *texts;
    int64_t n_labels;
    float *values;
};

/* Allocates them, by the number of the configuration's labels.  Borrows the texts.  STATUS_MEMORY. */
struct status classifier_logits_init(struct classifier_logits *l, const struct labelled_texts *texts,
                                     int64_t n_labels);
void classifier_logits_fini(struct classifier_logits *l);

/* The logits of text i. */
float *classifier_logits_get(const struct classifier_logits *l, int64_t i);

/* For finetune_task.prediction: how to predict them. */
struct predict_options classifier_logits_prediction(struct classifier_logits *l);

/* Logs the metrics, also as the event "score". */
void classifier_tell(struct metrics *log, const struct score_list *scores);

#endif
