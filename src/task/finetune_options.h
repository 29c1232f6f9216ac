/* finetune_options: the flags of every fine-tuning command, with run_squad.py's names where it has them. */
#ifndef KILN_TASK_FINETUNE_OPTIONS_H
#define KILN_TASK_FINETUNE_OPTIONS_H

#include "core/json.h"
#include "data/score_list.h"
#include "dev/precision.h"
#include "pass/tensor_log.h"
#include "task/early_stop.h"
#include "task/rank_options.h"
#include "train/loss_scale.h"
#include "watch/profile.h"
#include "watch/run_watch.h"

#include <stdint.h>

struct finetune_options {
    const char *command; /* "squad"; set by the run */
    const char *init_checkpoint, *config_file, *vocab_file, *output_dir;
    const char *train_file, *predict_file;
    const char *eval_file; /* labelled, for a loss as training goes on; NULL: none */
    const char *encoding;  /* of these files: corpus/text_file.h's; NULL: UTF-8 */
    int64_t eval_steps;    /* between those; 0: once an epoch */
    struct early_stop_options early;
    int64_t seeds;             /* runs of a series (task/seed_series.h); 0: a single run */
    struct score_list *scores; /* gets what the run scores; NULL: nobody asks */
    const char *device;
    int64_t max_seq_length;
    int64_t train_batch_size, gradient_accumulation_steps, predict_batch_size; /* the first two of one rank */
    struct rank_options ranks;
    int64_t log_freq, seed, throughput_warmup_steps, num_steps_per_checkpoint;
    bool log_freq_given;               /* so lines for people come as often, too */
    struct loss_scale_rule loss_scale; /* fp16 only */
    const char *freeze;                /* optim/param_rates.h */
    double layerwise_lr_decay;         /* and its layer_decay */
    double learning_rate, num_train_epochs, max_steps, warmup_proportion;
    struct profile_options profile;
    struct tensor_log_options tensor_log;
    struct run_watch_options watch;
    struct precision_flags precision;
    bool do_train, do_predict, do_eval, do_lower_case;
    const char *json_summary; /* dllogger's file; NULL: none */
    const json_t *flags;      /* all of these by name, for the logs; may be NULL */
    bool enable_tensorboard_logging, log_memory_usage;
    bool allow_other_data;     /* resume although --train_file has changed */
    bool overwrite_output_dir; /* replace what an earlier run finished there */
    bool skip_checkpoint, resume_from_checkpoint, disable_progress_bar, dry_run;
};

#endif
