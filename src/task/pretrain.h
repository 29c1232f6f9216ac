/* pretrain: the pre-training of any family, without its command line: a run in two phases, with held-out
 * evaluation, checkpoints and exact resumption.
 *
 * The rule: what a family predicts, and of which files its batches are made, is its own (struct
 * pretrain_kind); the run knows it only through that table. */
#ifndef KILN_TASK_PRETRAIN_H
#define KILN_TASK_PRETRAIN_H

#include "core/batch_growth.h"
#include "core/json.h"
#include "core/ramp.h"
#include "dev/precision.h"
#include "optim/schedule.h"
#include "pass/tensor_log.h"
#include "report/deepspeed_log.h"
#include "report/megatron_log.h"
#include "task/early_stop.h"
#include "task/emulation.h"
#include "task/health.h"
#include "task/rank_options.h"
#include "task/run_exit.h"
#include "train/loss_scale.h"
#include "watch/profile.h"
#include "watch/run_watch.h"

#include <stdint.h>

#define PRETRAIN_MOST_STEPS ((int64_t)1000000000000) /* of a phase */

struct pretrain_kind; /* task/pretrain_kind.h */

/* Of held-out text, in nats; NAN where there was no evaluation. */
struct pretrain_losses {
    double before, after; /* the first step of a run that begins, and the last step */
};

/* The flags of every pre-training command. */
struct pretrain_options {
    const struct pretrain_kind *kind; /* whose pre-training it is */
    const void *own;                  /* the kind's own flags */
    const char *input_dir;            /* of one of the kind's sources */
    const char *eval_input_dir; /* the same, to evaluate on; NULL: the held-out data of input_dir, if any */
    bool makes_data;            /* a run that is not dry makes input_dir before it begins */
    struct dir_lock *lock;      /* of output_dir, which makes_data needs before; NULL: the run locks it */
    const char *vocab_file;     /* or the directory of a model with it; NULL: that of input_dir */
    const char *merge_file;     /* merges.txt of a vocab_file that is vocab.json; NULL: it is whole */
    const char *config_file;
    const json_t *config; /* the configuration, where flags or a model say it; NULL: config_file.  Borrowed */
    const char *config_from; /* the model that says it; NULL: the flags */
    int64_t vocab_multiple;  /* the rows of a vocabulary whose size no configuration says; 0: its pieces */
    const char *output_dir;
    const char *load_dir;         /* whose newest checkpoint to resume from; NULL: output_dir */
    bool load_universal;          /* there, a universal checkpoint of Megatron-DeepSpeed */
    const char *init_checkpoint;  /* weights to start from; NULL: fresh ones */
    const char *optimizer;        /* a name of optim/optimizer.h */
    const char *device;           /* "auto", "cpu" or "cuda" */
    const char *loss_norm;        /* "global" or "micro" */
    const char *schedule;         /* "poly", "poly_constant", "linear", "constant", "warmup" or "anneal" */
    struct schedule warmup;       /* of "warmup" and "anneal": all but its base */
    const char *deepspeed_config; /* already read; to be named if it is missing */
    struct deepspeed_log_settings deepspeed_log; /* what it says of logs; not `on` without it */
    struct megatron_log_settings megatron_log;   /* not `on` but for the script that it is of */
    int64_t max_seq_length;
    int64_t train_batch_size, gradient_accumulation_steps; /* of one rank */
    struct rank_options ranks;
    struct emulation_options emulation; /* read by the command, which makes ranks.mesh of it */
    bool balance_tokens;                /* between ranks */
    int64_t max_steps, steps_this_run;  /* steps_this_run -1: max_steps */
    int64_t phase1_end_step, resume_step;
    int64_t num_steps_per_checkpoint, keep_checkpoints;
    int64_t eval_steps, eval_samples;
    bool eval_on_start;   /* before the first step too */
    int64_t eval_iters;   /* batches of an evaluation, which go on in the held-out samples; 0: eval_samples */
    struct run_exit exit; /* its start_ns is set by the run */
    struct early_stop_options early;
    struct health_options health;
    int64_t log_freq, seed;
    bool log_freq_given;                     /* so lines for people come as often, too */
    int64_t checkpoint_activations_interval; /* layers in a chunk; 0: the square root of their number */
    struct loss_scale_rule loss_scale;       /* fp16 only */
    double learning_rate, warmup_proportion, constant_proportion, scheduler_degree, weight_decay,
        max_grad_norm;
    double beta1, beta2, eps;
    double min_ratio, max_ratio; /* of ds_fused_lamb; max_ratio 0: its own */
    const char *batch_ramp;      /* the words of --rampup-batch-size; NULL: none */
    struct batch_growth growth;  /* of batch_ramp, in samples; its batch is 0 without */
    int64_t warmup_tokens;       /* 0: warmup_proportion */
    double total_training_time;  /* seconds; 0: max_steps */
    bool ppmi_embeddings;        /* a new model's word embeddings begin as data/ppmi_vectors */
    /* of nvlamb_exp: the correction multiplies whole steps, not the moments */
    bool use_ds_lamb_bias_correction;
    bool corrects_eps; /* AdamW adds eps after the bias correction: torch's and apex's (optim/optimizer.h) */
    bool checkpoint_activations, in_order; /* in_order: samples as they lie in their file */
    struct profile_options profile;
    struct tensor_log_options tensor_log;
    struct run_watch_options watch;
    struct precision_flags precision;
    bool exports_model;             /* the last weights, or the best ones, become OUTPUT_DIR/model */
    struct pretrain_losses *losses; /* gets them on all ranks; NULL: nobody asks */
    bool phase2, resume_from_checkpoint, skip_checkpoint, disable_progress_bar, dry_run;
    bool allow_other_data; /* resume although the data of --input_dir has changed */
    bool enable_tensorboard_logging, log_memory_usage;
    bool log_weight_norm, log_zero_gradients;
    const char *json_summary; /* dllogger's file; NULL: none */
    const json_t *flags;      /* all of these by name, for the logs; may be NULL */
};

/* STATUS_OK at the end of the phase or of steps_this_run; STATUS_PREEMPTED after a signal, with the state
 * saved; STATUS_NUMERIC names the first tensor that is not finite. */
struct status pretrain_run(const struct pretrain_options *o);

#endif
