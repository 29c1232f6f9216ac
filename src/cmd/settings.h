/* settings: the flags that several commands have.  Name, range, default and help of each stand once, here or
 * in settings.c; the tables of the commands list these rows and tables, and give what differs between
 * commands.  AT(field) is the offset of a field in the command's own struct. */
#ifndef KILN_CMD_SETTINGS_H
#define KILN_CMD_SETTINGS_H

#include "core/option.h"

/* ---- of most commands ---- */

#define DRY_RUN_ROW(at, help) OPTION_FLAG_ROW("dry-run", at, help)
#define DRY_RUN_OF_TRAINING_ROW                                                                              \
    DRY_RUN_ROW(AT(common.dry_run), "check everything, print the planned work and memory, and write "        \
                                    "nothing")

#define DEVICE_ROW(at)                                                                                       \
    OPTION_CHOICE_ROW("device", at, "auto", "auto|cpu|cuda",                                                 \
                      "compute on this device; auto means cpu, since cuda has not been tested on a GPU yet")

#define PROGRESS_BAR_ROW(at)                                                                                 \
    OPTION_FLAG_ROW("disable_progress_bar", at, "do not show a live line on a terminal")

/* ---- models, hosts ---- */

#define INIT_CHECKPOINT_ROW OPTION_SAME_ROW("init_checkpoint", "model", "the same as --model")

#define NUM_NODES_ROW(at)                                                                                    \
    OPTION_INT_ROW("num_nodes", at, NULL, -1, 1e6, "number of hosts to use, the first of --hostfile; -1: all")

#define SSH_PORT_ROW(at)                                                                                     \
    OPTION_INT_ROW("ssh_port", at, NULL, 1, 65535, "port of sshd on the hosts; the Gaudi guides use 3022")

/* ---- text ---- */

#define MERGE_FILE_ROW(at)                                                                                   \
    OPTION_STRING_ROW("merge_file", at, NULL, "FILE",                                                        \
                      "merges.txt, if --vocab_file is vocab.json; default: the one beside it")

#define MASKING_ROW(at)                                                                                      \
    OPTION_CHOICE_ROW("masking", at, "token", "token|within_word",                                           \
                      "of a masked model, choose what is masked. token: only the token that is predicted "   \
                      "(Salazar et al. 2020, arXiv:1910.14659); within_word: the later tokens of its word "  \
                      "too (Kauf & Ivanova 2023, arXiv:2305.10588)")
#define JSON_OF_PATHS_ROW(at)                                                                                \
    OPTION_FLAG_ROW("json", at, "print a JSON object for each path, and one for all")

#define ENCODING_ROW(at, what)                                                                               \
    OPTION_STRING_ROW("encoding", at, NULL, "NAME",                                                          \
                      "encoding of " what ", such as latin-1, cp1252 or utf-16; default: UTF-8")

#define ALLOW_TRUNCATED_ROW(at)                                                                              \
    OPTION_FLAG_ROW("allow_truncated_input", at,                                                             \
                    "use what is there of a .gz or .bz2 without its end, instead of ending with an error")

#define REPLACE_INVALID_ROW(at)                                                                              \
    OPTION_FLAG_ROW("replace_invalid_utf8", at,                                                              \
                    "read invalid UTF-8 as U+FFFD instead of ending with an error")

#define SKIP_OTHER_FILES_ROW(at)                                                                             \
    OPTION_FLAG_ROW("skip_other_files", at,                                                                  \
                    "leave out files of folders that are not text, with a warning, instead of ending with "  \
                    "an error; always so where the layout is kept")

/* Special tokens that stand in the texts of a decoder. */
#define NO_PARSE_SPECIAL_ROW(at)                                                                             \
    OPTION_FLAG_ROW(                                                                                         \
        "no_parse_special_tokens", at,                                                                       \
        "read \"<|endoftext|>\" and other special tokens that stand in a text as text; by default "          \
        "they are these tokens, as in transformers")

/* ---- training ---- */

#define MODEL_ROW OPTION_SAME_ROW("model", "init_checkpoint", "the same as --init_checkpoint")

#define ACCUMULATION_ROW                                                                                     \
    OPTION_INT_ROW("gradient_accumulation_steps", AT(batch.gradient_accumulation_steps), "1", 1, 1e6,        \
                   "number of micro-batches in an optimizer step, per rank; must divide --train_batch_size")

/* OPTIMIZER_NAMES: optim/optimizer.h */
#define OPTIMIZER_ROW(at)                                                                                    \
    OPTION_CHOICE_ROW("optimizer", at, "adamw", OPTIMIZER_NAMES, "update weights with this optimizer")

#define CLIPPING_ROW                                                                                         \
    OPTION_REAL_ROW("max_grad_norm", PRETRAIN(update.max_grad_norm), "1.0", 0, 1e9,                          \
                    "clip the global gradient norm at this; 0: off")

#define ADAM_BETA_ROWS(beta1_help)                                                                           \
    OPTION_REAL_ROW("adam_beta1", PRETRAIN(update.beta1), "0.9", 0, 0.999999, beta1_help),                   \
        OPTION_REAL_ROW("adam_beta2", PRETRAIN(update.beta2), "0.999", 0, 0.999999,                          \
                        "decay of the second moment")

#define ADAM_EPS_ROW(default_)                                                                               \
    OPTION_REAL_ROW("adam_eps", PRETRAIN(update.eps), default_, 1e-30, 1,                                    \
                    "add this to the square root of the second moment")

#define RECOMPUTATION_ROW                                                                                    \
    OPTION_FLAG_ROW("checkpoint_activations", PRETRAIN(checkpoint_activations),                              \
                    "keep the activations of few layers and recompute the others in backward: less memory, " \
                    "a third more work, the same bits")

#define RECOMPUTATION_INTERVAL_ROW(at)                                                                       \
    OPTION_INT_ROW(                                                                                          \
        "checkpoint_activations_interval", at, "0", 0, 1e6,                                                  \
        "number of layers that are recomputed together; 0: the square root of the number of layers")

#define RESUME_ROW                                                                                           \
    OPTION_FLAG_ROW("resume_from_checkpoint", AT(resume_from_checkpoint),                                    \
                    "resume from the newest valid checkpoint of --output_dir, with the same bits")

#define OTHER_DATA_ROW(what)                                                                                 \
    OPTION_FLAG_ROW("allow_other_data", AT(allow_other_data),                                                \
                    "resume although " what " the checkpoint was trained on")

#define NGRAM_ROW(at, of)                                                                                    \
    OPTION_INT_ROW(                                                                                          \
        "ngram_tokens", at, "2500000", 0, 1000000000,                                                        \
        of "count the n-grams of up to N tokens of the training text, and tell beside each evaluation what " \
           "these counts lose (Kneser-Ney); at most 133 bytes a token while counting; 0: off")

#define DEEPSCALE_ROWS                                                                                       \
    OPTION_SAME_ROW("deepscale", "deepspeed", "the old name of --deepspeed"),                                \
        OPTION_SAME_ROW("deepscale_config", "deepspeed_config", "the old name of --deepspeed_config")

#define LOSS_SCALE_ROW                                                                                       \
    OPTION_REAL_ROW(                                                                                         \
        "loss_scale", AT(loss_scale.fixed), "0", 0, 1e9,                                                     \
        "in fp16, multiply the loss by this before backward; 0: off, the scale follows overflows")

/* ---- logs and profiles of a run ---- */

#define LOG_FREQ_HELP                                                                                        \
    "number of steps between lines of log.jsonl; if given, also between lines on standard error, which by "  \
    "default come every 10 seconds"

#define RUN_LOG_ROWS                                                                                         \
    OPTION_STRING_ROW(                                                                                       \
        "json-summary", AT(json_summary), NULL, "FILE",                                                      \
        "write dllogger's lines to this file and to standard output, with the replaced script's keys"),      \
        OPTION_FLAG_ROW("enable-tensorboard-logging", AT(enable_tensorboard_logging),                        \
                        "write event files for TensorBoard into OUTPUT_DIR/worker_0"),                       \
        OPTION_ROWS_OF(settings_profile, AT(profile)),                                                       \
        {.name = "log_memory_usage",                                                                         \
         .kind = OPTION_BOOL,                                                                                \
         .offset = AT(log_memory_usage),                                                                     \
         .default_text = "false",                                                                            \
         .value_name = "BOOL",                                                                               \
         .choices = OPTION_ANY_WORD,                                                                         \
         .help = "log the memory in use and its peak with every line of steps; any word but false, no "      \
                 "and 0 is true"},                                                                           \
        OPTION_ROWS_OF(settings_tensor_log, AT(tensor_log)), OPTION_ROWS_OF(settings_watch, AT(watch))

/* ---- settings of a struct, in any command that has one ---- */

extern const struct option settings_precision[];      /* struct precision_flags */
extern const struct option settings_early_stopping[]; /* struct early_stop_options */
extern const struct option settings_health[];         /* struct health_options */
extern const struct option settings_ranks[];          /* struct rank_options */
extern const struct option settings_mesh[];           /* struct mesh_flags */
extern const struct option settings_emulation[];      /* struct emulation_options */
extern const struct option settings_profile[];        /* struct profile_options */
extern const struct option settings_tensor_log[];     /* struct tensor_log_options */
extern const struct option settings_watch[];          /* struct run_watch_options */
extern const struct option settings_launcher[];       /* struct launcher_flags: what launchers add */

/* Flags of run_pretraining.py and run_squad.py without a meaning here: accepted, each with a log line that
 * says why, so that an old command line runs unchanged; at the name of the device. */
extern const struct option settings_replaced[];

#endif
