/* pretrain_run: what a run of pre-training owns, and the parts of it that have a file of their own: where it
 * starts from (pretrain_start.c), what it evaluates (pretrain_evaluate.c) and what it says
 * (pretrain_report.c).  Only pretrain.c and those include this. */
#ifndef KILN_TASK_PRETRAIN_RUN_H
#define KILN_TASK_PRETRAIN_RUN_H

#include "data/prefetch.h"
#include "task/pace.h"
#include "task/plateau.h"
#include "task/pretrain_inputs.h"
#include "task/run.h"

#include <pthread.h>
#include <stdatomic.h>

/* Held-out samples, of which each evaluation takes those that follow the last one's.  The ranks with the same
 * part of the model share them. */
struct validation {
    const struct batch_source *source; /* borrowed */
    struct batch_step room;            /* buffer of one micro-batch */
};

/* Loss of counts of n-grams on held-out samples, the baseline of a decoder, found in a thread while the first
 * steps run.  Training does not depend on it: a missing baseline is a warning. */
struct ngram_beside {
    struct ngram_score score; /* n_samples 0: there is none */
    struct status status;     /* status of the thread, as the score is, once `done` */
    const struct pretrain_inputs *in;
    const struct pretrain_options *options;
    int64_t n_samples;
    pthread_t thread;
    bool running; /* the thread must be joined */
    atomic_bool done;
};

/* Everything a run owns, so that one function frees it all. */
struct pretrain_run {
    struct run run;
    struct pretrain_options *options; /* options of all ranks: the batch is the global one */
    struct pretrain_inputs in;
    struct run_progress progress;
    struct evaluation evaluation;
    double bytes_per_token;             /* bytes of held-out text for each predicted token; 0: unknown */
    struct validation validation, test; /* used with eval_iters; source NULL: there is no such data */
    struct plateau plateau;
    char advice[96]; /* viewed by `plateau` */
    struct pace pace;
    struct prefetch prefetch;
    struct store_check check;
    struct ngram_beside ngram;
    struct pretrain_losses losses;
    /* when the first step of this run ended, and the last so far; 0: none has */
    int64_t first_step_ns, last_step_ns;
    bool prefetching;
};

/* Loads the weights and position to start from: the newest checkpoint, a given model, or nothing. */
struct status pretrain_restore(void *self);

/* Path for the weights of a run that is over: OUTPUT_DIR/model with exports_model, else OUTPUT_DIR/best. */
struct status pretrain_export_path(char path[CHECKPOINT_PATH_BYTES], const struct pretrain_options *o);

/* Functions of the loop (struct loop_task): whether a state fits this run, and whether phase 2 may begin at
 * it. */
struct status pretrain_check_checkpoint(void *self, const struct training_state *from);
struct status pretrain_begin_phase(void *self, const struct run_state *saved, const char *path);

/* Opens what a run evaluates on, and begins to count n-grams; and evaluates: the task of the loop. */
struct status pretrain_open_evaluation(struct pretrain_run *r);
struct status pretrain_evaluate(void *self, double *loss);
void pretrain_close_evaluation(struct pretrain_run *r);

/* Logs what counts of n-grams lose, once it is known; an evaluation waits for it, so that each can be
 * compared with it. */
void pretrain_tell_ngrams(struct pretrain_run *r, bool wait);

/* Host memory of the batches that are made while others are trained on, of this rank. */
size_t pretrain_batch_bytes(const struct pretrain_run *r);

/* Opens the logs and writes what the run begins with. */
struct status pretrain_open_logs(struct pretrain_run *r);

/* Logs what is going to happen; and what has: the gain of --balance_tokens, the memory taken, or that all is
 * done. */
void pretrain_announce(const struct pretrain_run *r, const struct trainer_plan *p);
void pretrain_tell_balance(struct pretrain_run *r);
struct status pretrain_announce_peak(struct pretrain_run *r);
struct status pretrain_announce_traffic(struct pretrain_run *r);
void pretrain_tell_complete(const struct loop *l);

#endif
