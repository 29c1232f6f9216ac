/* example_tasks: `kiln squad`, `kiln classify`, `kiln tag` and `kiln embed-train` without their command
 * lines: fine-tuning a model on the examples of a file, and predicting what the examples of another lack.
 *
 * squad: questions whose answers are spans of a text; a drop-in for run_squad.py.  classify: texts or pairs
 * of texts with labels; the work of run_glue.py and run_classification.py of `transformers`.  tag:
 * sentences with a label for each word, such as names of people and places; the work of run_ner.py.  Devlin
 * et al. 2018 (arXiv:1810.04805) sections 4.2, 4.1 and 5.3. */
#ifndef KILN_TASK_EXAMPLE_TASKS_H
#define KILN_TASK_EXAMPLE_TASKS_H

#include "task/finetune.h"

/* The flags of the four commands, each of which has some of them. */
struct example_options {
    struct finetune_options run;
    /* texts and words; NULL: the usual columns */
    const char *text_column_name, *text_pair_column_name, *label_column_name;
    const char *label_separator; /* one character between labels of a text; NULL: ',' */
    bool no_header;              /* the first line of a table is a row */
    const char *problem_type;    /* as config.json names it; "auto" or NULL: what the labels suggest */
    double weight_decay;
    /* questions, by the names of run_squad.py */
    const char *eval_script; /* NULL: the built-in metric */
    int64_t doc_stride, max_query_length;
    int64_t n_best_size, max_answer_length;
    double null_score_diff_threshold;
    bool version_2_with_negative;
    /* pairs for vectors of texts */
    const char *loss;    /* "auto", "in_batch_negatives" or "cosent" */
    const char *pooling; /* "mean" or "cls" */
    double scale;        /* of cosines in the loss */
};

/* For finetune_run, with struct example_options. */
extern const struct finetune_task squad_task, classify_task, tag_task, embed_train_task;

#endif
