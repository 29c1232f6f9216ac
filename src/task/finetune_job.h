/* finetune_job: the state of a running fine-tuning, and the parts of it that have a file of their own: what
 * it begins with (finetune_start.c), training (finetune_train.c), predictions (finetune_predict.c), what an
 * earlier run finished (finetune_finished.c), and a series of runs (seed_series.c).  Only finetune.c and
 * those include this. */
#ifndef KILN_TASK_FINETUNE_JOB_H
#define KILN_TASK_FINETUNE_JOB_H

#include "data/example_batches.h"
#include "data/sorted_batches.h"
#include "task/finetune.h"
#include "task/run.h"

/* The number of checkpoints to keep. */
enum { FINETUNE_KEPT = 2 };

/* The result of fine-tuning. */
struct finetune_trained {
    int64_t n_steps;   /* steps done by this run */
    int64_t n_skipped; /* steps among them without an update, since their gradients overflowed */
    double seconds;
    double sequences_per_second; /* measured after throughput_warmup_steps */
    double final_loss;           /* mean of the last log_freq steps */
    /* loss of the last evaluation or, with early stopping, of the best; NAN without eval_file */
    double heldout_loss;
};

/* Labelled examples that are not trained on, for their loss. */
struct finetune_heldout {
    struct sorted_batches batches;
    struct batch_step one; /* a batch at a time, so that memory does not depend on their number */
};

/* The state of a running command. */
struct finetune_job {
    struct run run;
    struct finetune open;             /* the part that the task sees */
    struct finetune_options *options; /* options of all ranks: the batch is the global one */
    const struct finetune_task *task;
    struct model *model; /* owned */

    /* State of training. */
    struct example_batches batches;
    struct batch_limits limits; /* limits of these and of held-out batches */
    struct batch_step step;     /* this rank's part */
    struct finetune_heldout heldout;
    char data_id[80];   /* run_state.data */
    double loss;        /* loss that open.train.prepare has returned */
    int64_t log_every;  /* steps between lines of the log */
    double window_loss; /* sum since the last log line */
    double told_loss;   /* sum since the last multiple of log_freq, over told_steps */
    int64_t told_steps;
    int64_t window_steps, window_sequences, window_start_ns;
    double n_sequences; /* sequences after the warm-up of the throughput */
    int64_t start_ns, measured_ns;
    struct finetune_trained result;
};

/* Checks the flags.  STATUS_USAGE: flags that do not go together, or nothing to do. */
struct status finetune_check(void *self);

/* Opens the model.  A configuration and vocabulary that were given too must be the model's own. */
struct status finetune_open_model(struct finetune_job *j);

/* Loads the weights.  The head may be new if it is going to be trained, or if predictions of a random one are
 * wanted. */
struct status finetune_load_weights(struct finetune_job *j);

/* Names each missing input, for a dry run; true if there is one.  Then finetune_assume takes the model as
 * --config_file says it or, without one, --init_checkpoint: NULL where neither is there; and the batches as
 * the flags alone say. */
bool finetune_find_missing(void *self, struct missing *m);
struct status finetune_assume(void *self);

/* Checks the outputs, on the first rank.  STATUS_USAGE names a fine-tuned model, or the file of predictions,
 * that this run would replace without a flag that allows it, or a model of another class, which no flag lets
 * it replace. */
struct status finetune_finished_check(const struct finetune_job *j);

/* With --overwrite_output_dir: removes that model and that file, and the checkpoints of runs of this command;
 * nothing if the run resumes, as it does when `kiln launch` restarts it after a failure.  STATUS_USAGE, and
 * nothing is removed, if the directory that the run starts from would go. */
struct status finetune_finished_remove(void *self);

/* Upper bounds of the batches of training. */
struct status finetune_train_limits(struct finetune_job *j);

/* Steps of the complete run. */
int64_t finetune_train_steps(const struct finetune_job *j);

/* The loop's part of `restore`, once the weights are loaded; and the steps, after which the trainer has the
 * best weights if the run has early stopping. */
struct status finetune_train_restore(struct finetune_job *j);
struct status finetune_train(struct finetune_job *j);
void finetune_train_close(struct finetune_job *j);

/* Upper bounds of the batches of predictions. */
struct batch_limits finetune_predict_limits(const struct finetune_job *j);

/* Predicts, writes, and with do_eval scores. */
struct status finetune_predict(void *self);

/* Runs a task once; and a series of it under several seeds (--seeds K): run k of K, with the seed --seed + k,
 * is a complete run in OUTPUT_DIR/seed_S, with logs, checkpoints and a model.  Its result.json is written
 * last; a series resumes (--resume_from_checkpoint) with the runs that lack one.  Devlin et al. 2018
 * (arXiv:1810.04805) section 4.1 says why: small data sets differ from seed to seed.
 *
 * The series prints a table to standard output and writes it as OUTPUT_DIR/seeds.json: of each score its
 * values, their mean, and their sample standard deviation (K - 1 in the denominator).  With --dry-run it
 * plans one run.  The first run that fails ends it. */
struct status finetune_run_one(const struct finetune_task *task, const void *options);
struct status finetune_series(const struct finetune_task *task, const void *options);

/* Keeps a score for a series of runs, if this one is part of one. */
void finetune_keep_score(const struct finetune_job *j, const char *name, double value);

#endif
