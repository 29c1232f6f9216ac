/* squad: `kiln squad` without its command line: fine-tuning BERT on questions whose answers are spans of a
 * text, and predicting such answers.  A drop-in for run_squad.py; Devlin et al. 2018 (arXiv:1810.04805)
 * section 4.2. */
#ifndef KILN_TRAIN_SQUAD_H
#define KILN_TRAIN_SQUAD_H

#include "core/json.h"
#include "train/precision.h"
#include "train/profile.h"

#include <stdint.h>

/* The flags of the command, by the names of the script that it replaces. */
struct squad_options {
    const char *bert_model; /* only in the name of the feature cache */
    const char *init_checkpoint, *config_file, *vocab_file, *output_dir;
    const char *train_file, *predict_file;
    const char *cache_dir;   /* NULL: beside the train_file */
    const char *eval_script; /* NULL: the built-in metric */
    const char *device;
    int64_t max_seq_length, doc_stride, max_query_length;
    int64_t train_batch_size, gradient_accumulation_steps, predict_batch_size;
    int64_t n_best_size, max_answer_length;
    int64_t log_freq, seed, throughput_warmup_steps, num_steps_per_checkpoint;
    double loss_scale; /* fp16 only: trainer_config's */
    double learning_rate, num_train_epochs, max_steps, warmup_proportion, null_score_diff_threshold;
    struct profile_options profile;
    struct precision_flags precision;
    bool do_train, do_predict, do_eval, do_lower_case, version_2_with_negative;
    const char *json_summary;  /* dllogger's file; NULL: none */
    const char *migration_log; /* which kernel served each op (train/migration_log.h); NULL: none */
    bool sync_ops;             /* wait after every op, so that a device's error is named with it */
    const json_t *flags;       /* all of these by name, for the logs; may be NULL */
    bool enable_tensorboard_logging;
    bool allow_other_data; /* resume although --train_file is another than before */
    bool skip_cache, skip_checkpoint, resume_from_checkpoint, disable_progress_bar, dry_run;
};

/* STATUS_OK when everything asked for is done; STATUS_PREEMPTED after a signal, with the state saved. */
struct status squad_run(const struct squad_options *o);

#endif
