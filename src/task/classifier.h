/* classifier: what `kiln classify` and `kiln tag` share beyond fine-tuning itself: the source of labels. */
#ifndef KILN_TASK_CLASSIFIER_H
#define KILN_TASK_CLASSIFIER_H

#include "serve/class_logits.h"
#include "task/finetune.h"

/* Whether the model has the head of this task, and so labels.  STATUS_DATA: its classifier is of another
 * kind. */
struct status classifier_find(const struct finetune *f, enum model_task task, bool *has);

/* Configures a new head with these labels, borrowed, and logs them. */
void classifier_set_labels(struct finetune *f, const struct label_names *labels, enum label_problem problem);

/* AdamW as `transformers` had it before its version 5: bias correction, eps 1e-8. */
void classifier_set_optimizer(struct optimizer *o, double weight_decay);

#endif
