/* pretrain_run: what a run of pre-training owns, and the parts of it that have a file of their own: where it
 * starts from (pretrain_start.c) and what it says (pretrain_report.c).  Only pretrain.c and those two include
 * this. */
#ifndef KILN_TASK_PRETRAIN_RUN_H
#define KILN_TASK_PRETRAIN_RUN_H

#include "data/prefetch.h"
#include "io/dir_lock.h"
#include "ops/backend.h"
#include "report/metrics.h"
#include "task/loop.h"
#include "task/ngram_beside.h"
#include "task/pace.h"
#include "task/plateau.h"
#include "task/pretrain_inputs.h"
#include "task/pretrain_ramps.h"
#include "task/validation.h"
#include "watch/run_watch.h"

/* Everything a run owns, so that one function frees it all. */
struct pretrain_run {
    const struct pretrain_options *options; /* of all ranks: the batch is the global one */
    struct comm world;
    struct pretrain_inputs in;
    struct pretrain_progress progress;
    struct backend backend;
    struct precision precision;
    struct run_watch watch;
    struct loop loop;
    struct trainer trainer;
    struct evaluation evaluation;
    struct validation validation, test; /* with eval_iters; source NULL: there is no such data */
    struct plateau plateau;
    char advice[96]; /* viewed by it */
    struct pace pace;
    struct prefetch prefetch;
    struct store_check check;
    struct metrics metrics;
    struct dir_lock lock;
    int64_t start_ns;
    struct ngram_beside ngram;
    struct pretrain_losses losses;
    size_t taken_bytes; /* of host memory, before the model's is allocated */
    /* when the first step of this run ended, and the last so far; 0: none has */
    int64_t first_step_ns, last_step_ns;
    bool prefetching;
};

/* Loads the weights and position to start from: the newest checkpoint, a given model, or nothing. */
struct status pretrain_restore(struct pretrain_run *r);

/* Where the weights of a run go that is over: OUTPUT_DIR/model with exports_model, else OUTPUT_DIR/best. */
struct status pretrain_export_path(char path[CHECKPOINT_PATH_BYTES], const struct pretrain_options *o);

/* Of the loop (struct loop_task): whether a state fits this run, and whether phase 2 may begin at it. */
struct status pretrain_check_checkpoint(void *self, const struct training_state *from);
struct status pretrain_begin_phase(void *self, const struct run_state *saved, const char *path);

/* Host memory of the batches that are made while others are trained on, of this rank. */
size_t pretrain_batch_bytes(const struct pretrain_run *r);

/* Opens the logs and writes what the run begins with.  `free_before`: bytes of its device, before the model
 * was allocated. */
struct status pretrain_open_logs(struct pretrain_run *r, size_t free_before);

/* Logs what is going to happen; and what has: the gain of --balance_tokens, the memory taken, or that all is
 * done. */
void pretrain_announce(const struct pretrain_run *r, const struct trainer_plan *p);
void pretrain_tell_balance(struct pretrain_run *r);
struct status pretrain_announce_peak(struct pretrain_run *r, size_t free_before);
struct status pretrain_announce_traffic(struct pretrain_run *r);
void pretrain_tell_complete(const struct loop *l);

#endif
