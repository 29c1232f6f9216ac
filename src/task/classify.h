/* classify: `kiln classify` without its command line: fine-tuning a model to classify texts or pairs of
 * texts, and predicting their labels.  Devlin et al. 2018 (arXiv:1810.04805) section 4.1; it does the work of
 * run_glue.py and run_classification.py of `transformers`. */
#ifndef KILN_TASK_CLASSIFY_H
#define KILN_TASK_CLASSIFY_H

#include "task/finetune.h"

struct classify_options {
    struct finetune_options run;
    const char *text_column_name, *text_pair_column_name, *label_column_name; /* NULL: the usual ones */
    const char *label_separator; /* one character between labels of a text; NULL: ',' */
    bool no_header;              /* the first line of a table is a row */
    const char *problem_type;    /* "auto", or as config.json names it */
    double weight_decay;
};

/* For finetune_run. */
extern const struct finetune_task classify_task;

#endif
