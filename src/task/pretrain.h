/* pretrain: the pre-training of any family, without its command line: a run in two phases, with held-out
 * evaluation, checkpoints and exact resumption.
 *
 * The rule: what a family predicts, and of which files its batches are made, is its own (struct
 * pretrain_kind); the run knows it only through that table. */
#ifndef KILN_TASK_PRETRAIN_H
#define KILN_TASK_PRETRAIN_H

#include "core/batch_growth.h"
#include "core/option.h"
#include "core/ramp.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "report/deepspeed_log.h"
#include "report/megatron_log.h"
#include "task/emulation.h"
#include "task/run_settings.h"

#define PRETRAIN_MOST_STEPS ((int64_t)1000000000000) /* steps of a phase */

struct pretrain_kind; /* task/pretrain_kind.h */

/* Losses of held-out text, in nats; NAN where there was no evaluation. */
struct pretrain_losses {
    double before, after; /* losses before the first step of a run that begins, and after the last */
};

/* The flags of every pre-training command. */
struct pretrain_options {
    struct run_settings run;
    const struct pretrain_kind *kind; /* functions and settings of the family */
    const void *own;                  /* the kind's own flags */
    const char *input_dir;            /* directory for one of the kind's sources */
    const char *eval_input_dir; /* directory to evaluate on; NULL: the held-out data of input_dir, if any */
    bool makes_data;            /* a run that is not dry makes input_dir before it begins */
    struct dir_lock *lock;      /* lock of output_dir, taken if makes_data; NULL: the run locks it */
    const json_t *config; /* the configuration, if flags or a model give it; NULL: config_file.  Borrowed */
    const char *config_from; /* the model that gives it; NULL: the flags */
    int64_t vocab_multiple;  /* rows are rounded up to it where no configuration says them; 0: no rounding */
    bool load_universal;     /* load_dir has a universal checkpoint of Megatron-DeepSpeed */
    const char *optimizer;   /* a name of optim/optimizer.h */
    const char *loss_norm;   /* "global" or "micro" */
    const char *schedule;    /* "poly", "poly_constant", "linear", "constant", "warmup" or "anneal" */
    struct schedule warmup;  /* fields of "warmup" and "anneal", all but `base` */
    const char *deepspeed_config;                /* already read; to be named if it is missing */
    struct deepspeed_log_settings deepspeed_log; /* log settings of that file; not `on` without it */
    struct megatron_log_settings megatron_log;   /* `on` only for the script of Megatron-DeepSpeed */
    struct emulation_options emulation;          /* read by the command, which makes ranks.mesh of it */
    bool balance_tokens;    /* deal sequences by length, so that ranks have equal tokens */
    int64_t steps_this_run; /* -1: max_steps */
    int64_t phase1_end_step, resume_step;
    int64_t eval_samples;
    struct option_words sample_prompts; /* prompts of which each evaluation says what the model makes */
    bool eval_on_start;                 /* evaluate before the first step too */
    int64_t eval_iters; /* batches of an evaluation, which follow those of the last one; 0: eval_samples */
    int64_t checkpoint_activations_interval; /* layers in a chunk; 0: the square root of their number */
    double constant_proportion, scheduler_degree;
    struct optimizer update;    /* numbers and switches; false, or a max_ratio of 0: as its kind has them */
    const char *batch_ramp;     /* the words of --rampup-batch-size; NULL: none */
    struct batch_growth growth; /* growth by batch_ramp, in samples; `batch` is 0 without it */
    double total_training_time; /* seconds; 0: max_steps */
    bool ppmi_embeddings;       /* a new model's word embeddings begin as data/ppmi_vectors */
    bool checkpoint_activations;
    bool exports_model;             /* the last weights, or the best ones, become OUTPUT_DIR/model */
    struct pretrain_losses *losses; /* receives the losses on all ranks; NULL: not wanted */
    bool phase2;
    bool log_weight_norm, log_zero_gradients;
};

/* Flags that were given and say how long the run and its warm-up are. */
struct pretrain_lengths_given {
    const char *steps; /* a flag that ends a run by steps; NULL: none was given */
    bool warmup_proportion;
};

/* Checks --total_training_time and --warmup_tokens against the run, and sets what follows from them.
 * STATUS_USAGE names the flags. */
struct status pretrain_read_lengths(struct pretrain_options *o, const struct pretrain_lengths_given *given);

/* STATUS_OK at the end of the phase or of steps_this_run; STATUS_PREEMPTED after a signal, with the state
 * saved; STATUS_NUMERIC names the first tensor that is not finite. */
struct status pretrain_run(const struct pretrain_options *o);

#endif
