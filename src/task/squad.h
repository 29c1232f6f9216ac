/* squad: `kiln squad` without its command line: fine-tuning a model on questions whose answers are spans of a
 * text, and predicting such answers.  A drop-in for run_squad.py; Devlin et al. 2018 (arXiv:1810.04805)
 * section 4.2. */
#ifndef KILN_TASK_SQUAD_H
#define KILN_TASK_SQUAD_H

#include "task/finetune.h"

/* The flags of the command, by the names of the script that it replaces. */
struct squad_options {
    struct finetune_options run;
    const char *eval_script; /* NULL: the built-in metric */
    int64_t doc_stride, max_query_length;
    int64_t n_best_size, max_answer_length;
    double null_score_diff_threshold;
    bool version_2_with_negative;
};

/* For finetune_run. */
extern const struct finetune_task squad_task;

#endif
