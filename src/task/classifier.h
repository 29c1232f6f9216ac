/* classifier: what `kiln classify` and `kiln tag` share beside fine-tuning itself: where labels come from, logits that
 * wait until all texts are predicted, metrics. */
#ifndef KILN_TASK_CLASSIFIER_H
#define KILN_TASK_CLASSIFIER_H

#include "data/labelled_texts.h"
#include "data/score_list.h"
#include "task/finetune.h"

/* Whether the model has the head of this task, and so its labels.  STATUS_DATA: its classifier is of another kind. */
struct status classifier_find(const struct finetune *f, enum bert_task task, bool *has);

/* Gives the model a head with these labels, borrowed, and logs them. */
void classifier_set_labels(struct finetune *f, const struct label_names *labels, enum bert_problem problem);

/* AdamW as `transformers` had it before its version 5: bias correction, eps 1e-8. */
void classifier_set_optimizer(struct optimizer *o, double weight_decay);

/* Logits of all texts, [n_labels] for each or for each of its tokens. */
struct classifier_logits {
    const struct labelled_texts *texts;
    int64_t n_labels;
    float *values;
};

/* Room for them, by the configuration's labels.  Borrows the texts.  STATUS_MEMORY. */
struct status classifier_logits_init(struct classifier_logits *l, const struct labelled_texts *texts,
                                     int64_t n_labels);
void classifier_logits_fini(struct classifier_logits *l);

/* Those of text i. */
float *classifier_logits_get(const struct classifier_logits *l, int64_t i);

/* How to predict them; finetune_task.prediction. */
struct predict_options classifier_logits_prediction(struct classifier_logits *l);

/* Logs the metrics and tells them as the event "score". */
void classifier_tell(struct metrics *log, const struct score_list *scores);

#endif
