/* finetune: the common part of all commands that train a head and predict with it: it opens the model,
 * plans its memory, opens outputs and logs, trains, saves, predicts, scores.
 *
 * A task (task/example_task.h) reads its files into examples, interprets logits, and writes its
 * predictions; its options begin with the common ones. */
#ifndef KILN_TASK_FINETUNE_H
#define KILN_TASK_FINETUNE_H

#include "data/example_source.h"
#include "data/score_list.h"
#include "model/model_dir.h"
#include "optim/optimizer.h"
#include "serve/request.h"
#include "task/missing.h"
#include "task/run_settings.h"
#include "train/trainer.h"

/* The flags of every fine-tuning command, with run_squad.py's names where it has them. */
struct finetune_options {
    struct run_settings run;
    const char *train_file, *predict_file;
    const char *eval_file;     /* labelled, for a loss during training; with eval_steps 0 once per epoch */
    const char *encoding;      /* encoding of these files: corpus/text_file.h's; NULL: UTF-8 */
    int64_t seeds;             /* runs of a series (task/seed_series.c); 0: a single run */
    struct score_list *scores; /* receives the scores of the run; NULL: not wanted */
    int64_t predict_batch_size, throughput_warmup_steps;
    const char *freeze;        /* see optim/param_rates.h */
    double layerwise_lr_decay; /* layer_decay of optim/param_rates.h */
    double num_train_epochs, max_steps;
    bool do_train, do_predict, do_eval;
    bool overwrite_output_dir; /* replace what an earlier run finished there */
};

/* Data to train on or to predict. */
struct finetune_data {
    const char *task;             /* name in the logs: "question answering" */
    const char *unit;             /* the unit of n_examples: "questions" */
    int64_t n_examples;           /* examples in the file; a long one may become several in the source */
    bool counts_examples;         /* the schedule's length is computed from n_examples, in whole batches */
    struct example_source source; /* borrowed */
    /* Makes a rank's part of a batch ready for its step, together with the other ranks, and returns the
     * step's loss; NULL: the step itself returns it. */
    struct status (*prepare)(void *self, struct trainer *t, struct batch_step *batch, int64_t step,
                             const struct comm *world, double *loss);
    void *self;
};

/* The part of a job that its task sees.  The model is open; task->read may still change its configuration,
 * and sets `train`, `heldout` and `predict`. */
struct finetune {
    void *self;
    const struct finetune_options *options;
    struct model_dir model;
    struct finetune_data train, heldout, predict;
};

/* A row of the table of fine-tuning commands.  Each function gets the task's `self`, a struct that begins
 * with the pointer to its options, all else zero at first; the options begin with struct finetune_options. */
struct finetune_task {
    const char *command; /* "squad" */
    size_t options_bytes, self_bytes;
    bool eval_predicts;      /* --do_eval implies --do_predict */
    const char *predictions; /* the file that `write` makes in --output_dir */
    enum model_task task;
    /* 1 << enum names_part: the parts that may be missing in the model, to be trained from scratch */
    unsigned may_be_new;
    bool predicts_untrained; /* --do_predict without training draws these parts, with a warning */

    /* Adds, for a dry run, the files of the task's own options that are not there; NULL: it has none. */
    void (*find_missing)(const void *options, struct missing *missing);

    /* Reads the files that the options ask for, and sets f->train, f->heldout and f->predict.  It may keep
     * pointers into `f`, which does not move until the end. */
    struct status (*read)(void *self, struct finetune *f);

    void (*set_optimizer)(const void *self, struct optimizer *o);

    bool learns_vectors; /* training uses nn/vector_head.h: f->train has a `prepare` */

    /* Writes more files next to the fine-tuned model in `path`; NULL: there are none. */
    struct status (*add_files)(void *self, const char *path);

    /* The request for the outputs of f->predict. */
    struct request (*prediction)(void *self);

    /* Writes the predictions, and appends the names of the files. */
    struct status (*write)(void *self, struct buf *names);

    /* Scores the predictions, and appends tables of the scores (report/report_chart); the job logs both. */
    struct status (*score)(void *self, struct score_list *scores, json_t *tables);

    /* Frees what `read` and the others allocated in `self`. */
    void (*close)(void *self);
};

/* Runs a task with its options, or with --seeds a series of it.  STATUS_OK when everything asked for is
 * done; STATUS_PREEMPTED after a signal, with the state saved. */
struct status finetune_run(const struct finetune_task *task, const void *options);

/* Sets the path to OUTPUT_DIR/NAME. */
struct status finetune_output_path(char path[MODEL_DIR_PATH_BYTES], const struct finetune_options *o,
                                   const char *name);

#endif
