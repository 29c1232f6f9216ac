/* run_settings: the flags that every command which trains has.  A command's own options begin with them; the
 * loop, the trainer and the logs read them here. */
#ifndef KILN_TASK_RUN_SETTINGS_H
#define KILN_TASK_RUN_SETTINGS_H

#include "core/option.h"
#include "data/batch_source.h"
#include "dev/precision.h"
#include "report/tensor_log.h"
#include "task/early_stop.h"
#include "task/health.h"
#include "task/rank_options.h"
#include "text/tokenizer_open.h"
#include "train/loss_scale.h"
#include "watch/profile.h"
#include "watch/run_watch.h"

#include <stdint.h>

/* Names of a command's flags, for messages. */
struct run_flag_names {
    const char *data, *output, *resume, *batch; /* "--input_dir", ... */
    const char *command;                        /* "pretrain" */
    bool tunes;     /* a command of fine-tuning, whose checkpoints are its own (task/own_files.h) */
    bool of_prefix; /* the data is the PREFIX of PREFIX.idx and PREFIX.bin, whose split has all parts; else a
                     * directory */
};

/* Conditions that end a run before its last step, besides a signal: it saves, and ends with success.  The
 * same command continues it. */
struct run_exit {
    int64_t interval; /* the run ends after steps that are multiples of it; 0: never */
    double minutes;   /* the run ends after the step in which this time since start_ns is over; 0: never */
    int64_t start_ns; /* core/clock; set by the run */
    const char *kill_switch; /* the run ends once a file of this name is there; NULL: never */
};

struct run_settings {
    const struct run_flag_names *names;
    const char *init_checkpoint; /* weights to start from; NULL: fresh ones */
    struct vocab_flags vocabulary;
    struct command_flags common;
    const char *load_dir;     /* directory whose newest checkpoint to resume from; NULL: output_dir */
    const char *device;       /* "auto", "cpu" or "cuda" */
    struct batch_flags batch; /* per rank; of all ranks once the run has begun */
    struct rank_options ranks;
    struct precision_flags precision;
    struct loss_scale_rule loss_scale; /* fp16 only */
    int64_t max_steps;                 /* steps of a phase; fine-tuning sets it when it knows its data */
    int64_t seed;
    double learning_rate, warmup_proportion;
    /* tokens over which the rate rises from 0, besides what the schedule does; 0: it does not */
    int64_t warmup_tokens;
    int64_t num_steps_per_checkpoint; /* 0: none between */
    int64_t keep_checkpoints;         /* 0: all */
    int64_t eval_steps;               /* steps between evaluations; 0: none between */
    struct early_stop_options early;
    struct health_options health;
    struct run_exit exit;
    int64_t log_freq;
    bool log_freq_given; /* so lines for people come as often, too */
    struct profile_options profile;
    struct tensor_log_options tensor_log;
    struct run_watch_options watch;
    const char *json_summary; /* dllogger's file; NULL: none */
    const json_t *flags;      /* all flags by name, for the logs; may be NULL */
    char *command;            /* the command line, for the logs; may be NULL */
    bool skip_checkpoint, resume_from_checkpoint;
    bool allow_other_data; /* resume although the training data has changed */
    bool enable_tensorboard_logging, log_memory_usage;
};

#endif
