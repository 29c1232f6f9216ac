/* tag: `kiln tag` without its command line: fine-tuning a model to label the words of sentences, such as
 * names of people and places, and predicting such labels.  Devlin et al. 2018 (arXiv:1810.04805) section 5.3;
 * it does the work of run_ner.py of `transformers`. */
#ifndef KILN_TASK_TAG_H
#define KILN_TASK_TAG_H

#include "task/finetune.h"

struct tag_options {
    struct finetune_options run;
    const char *text_column_name, *label_column_name; /* of JSON lines; NULL: the usual ones */
    double weight_decay;
};

/* For finetune_run. */
extern const struct finetune_task tag_task;

#endif
