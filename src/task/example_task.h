/* example_task: `kiln squad`, `kiln classify`, `kiln tag` and `kiln embed-train` without their command
 * lines: fine-tuning a model on the examples of a file, and predicting what the examples of another lack.
 *
 * squad: questions whose answers are spans of a text; a drop-in for run_squad.py.  classify: texts or pairs
 * of texts with labels; the work of run_glue.py and run_classification.py of `transformers`.  tag:
 * sentences with a label for each word, such as names of people and places; the work of run_ner.py.  Devlin
 * et al. 2018 (arXiv:1810.04805) sections 4.2, 4.1 and 5.3. */
#ifndef KILN_TASK_EXAMPLE_TASK_H
#define KILN_TASK_EXAMPLE_TASK_H

#include "data/class_examples.h"
#include "data/squad_answers.h"
#include "data/tag_examples.h"
#include "serve/class_logits.h"
#include "task/finetune.h"
#include "task/pair_step.h"

/* The flags of the four commands, each of which has some of them. */
struct example_options {
    struct finetune_options run;
    /* columns of texts and words; NULL: the usual ones */
    const char *text_column_name, *text_pair_column_name, *label_column_name;
    const char *label_separator; /* one character between labels of a text; NULL: ',' */
    bool no_header;              /* the first line of a table is a row */
    const char *problem_type;    /* name as in config.json; "auto" or NULL: what the labels suggest */
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
    double scale;        /* factor of the cosines in the loss */
};

/* Tasks for finetune_run, with struct example_options. */
extern const struct finetune_task squad_task, classify_task, tag_task, embed_train_task;

/* ---- for the files of the tasks, task/example_*.c ---- */

/* A file of one of the kinds; the other kinds stay zeroed. */
struct example_file {
    const char *path;
    struct class_examples texts;
    struct tag_examples words;
    struct squad_examples questions;
    struct squad_features windows; /* cut from the questions' contexts */
};

/* State of a task while it runs. */
struct example_task {
    const struct example_options *options;
    const struct tokenizer *tokenizer;
    const struct model_labels *labels; /* the model's, borrowed */
    struct label_names new_labels;
    struct example_file train, heldout, predict;
    struct class_logits logits;     /* used for texts and words */
    struct class_reading *readings; /* [labels->n], for one text */
    struct squad_answers answers;
    struct pair_step pairs;
    struct pair_source pair_source;
    int64_t n_pairs; /* pairs of a global batch */
    struct predicted_vectors {
        float *values; /* [2 n_pairs, width] */
        int64_t width;
        int64_t *order; /* order of the request: the longest text first */
    } vectors;
};

/* Functions that read a kind of examples. */
struct example_kind {
    struct finetune_data data; /* all but its numbers, which `encode` sets */
    enum model_task task;
    /* Reads the file, and the names of its labels; NULL: `encode` reads the file, and it has none. */
    struct status (*open)(struct example_file *e, const struct example_options *o);
    struct status (*names)(const struct example_file *e, enum label_problem problem,
                           struct label_names *names);
    enum label_problem (*problem)(const struct example_file *e);
    /* Makes sequences, logs them and sets the data's numbers. */
    struct status (*encode)(struct example_task *t, struct example_file *e, struct finetune_data *data,
                            struct tokenizer_scratch *scratch, const struct label_kind *labels);
};

/* Opens a table of texts; logs how many `unit`s it has, where, and what was cut. */
struct status example_texts_open(struct example_file *e, const struct example_options *o);
void example_texts_tell(const struct example_task *t, const struct example_file *e, const char *unit);

/* Reads the files that the options ask for, finds the labels of the model or of --train_file, and encodes. */
struct status example_task_read(struct example_task *t, const struct example_kind *kind, struct finetune *f);

/* Functions of several rows: free all; set AdamW as `transformers` had it before its version 5, with bias
 * correction and eps 1e-8; return the request of class_logits. */
void example_task_close(void *self);
void example_task_set_optimizer(const void *self, struct optimizer *o);
struct request example_task_logits(void *self);

/* The value of the column "id", "idx" or "index" of a row of texts, else its number. */
json_t *example_task_id(const struct example_task *t, int64_t i);

/* Writes predictions.jsonl, a line of each row of texts, and appends its name. */
struct status example_task_write(struct example_task *t, struct buf *names,
                                 struct status (*put)(struct buf *line, const struct example_task *t,
                                                      int64_t i));

#define EXAMPLE_TASK                                                                                         \
    .options_bytes = sizeof(struct example_options), .self_bytes = sizeof(struct example_task),              \
    .close = example_task_close

#endif
