/* settings: the flags that several commands have.  Name, range, default and help of each stand here once; the
 * tables of the commands list these rows and groups of rows, and give what differs between commands.  AT(field)
 * is the offset of a field in the command's own struct, `at` that of the struct of a group. */
#ifndef KILN_CMD_SETTINGS_H
#define KILN_CMD_SETTINGS_H

#include "core/launcher.h"
#include "core/option.h"
#include "task/emulation.h"
#include "task/rank_options.h"

/* ---- of most commands ---- */

#define DRY_RUN_ROW(at, help) OPTION_FLAG_ROW("dry-run", at, help)
#define DRY_RUN_OF_TRAINING_ROW                                                                              \
    DRY_RUN_ROW(AT(dry_run), "check everything, print the planned work and memory, and write nothing")

#define DEVICE_ROW(at)                                                                                       \
    OPTION_CHOICE_ROW("device", at, "auto", "auto|cpu|cuda",                                                 \
                      "compute on this device; auto means cpu, since cuda has not been tested on a GPU yet")

#define PROGRESS_BAR_ROW(at)                                                                                 \
    OPTION_FLAG_ROW("disable_progress_bar", at, "do not show a live line on a terminal")

/* ---- text ---- */

#define ENCODING_ROW(at, what)                                                                               \
    OPTION_STRING_ROW("encoding", at, NULL, "NAME",                                                          \
                      "encoding of " what ", such as latin-1, cp1252 or utf-16; default: UTF-8")

#define ALLOW_TRUNCATED_ROW(at)                                                                              \
    OPTION_FLAG_ROW("allow_truncated_input", at,                                                             \
                    "use what is there of a .gz or .bz2 without its end, instead of ending with an error")

#define REPLACE_INVALID_ROW(at)                                                                              \
    OPTION_FLAG_ROW("replace_invalid_utf8", at,                                                              \
                    "read invalid UTF-8 as U+FFFD instead of ending with an error")

/* Special tokens that stand in the texts of a decoder. */
#define NO_PARSE_SPECIAL_ROW(at)                                                                             \
    OPTION_FLAG_ROW(                                                                                         \
        "no_parse_special_tokens", at,                                                                       \
        "read \"<|endoftext|>\" and other special tokens that stand in a text as text; by default "          \
        "they are these tokens, as in transformers")

/* ---- training ---- */

#define MODEL_ROW                                                                                            \
    OPTION_STRING_ROW("model", AT(init_checkpoint), NULL, "PATH", "the same as --init_checkpoint")

#define ACCUMULATION_ROW                                                                                     \
    OPTION_INT_ROW("gradient_accumulation_steps", AT(gradient_accumulation_steps), "1", 1, 1e6,              \
                   "number of micro-batches in an optimizer step, per rank; must divide --train_batch_size")

#define CLIPPING_ROW                                                                                         \
    OPTION_REAL_ROW("max_grad_norm", AT(max_grad_norm), "1.0", 0, 1e9,                                       \
                    "clip the global gradient norm at this; 0: off")

#define ADAM_BETA_ROWS(beta1_help)                                                                           \
    OPTION_REAL_ROW("adam_beta1", AT(beta1), "0.9", 0, 0.999999, beta1_help),                                \
        OPTION_REAL_ROW("adam_beta2", AT(beta2), "0.999", 0, 0.999999, "decay of the second moment")

#define ADAM_EPS_ROW(default_)                                                                               \
    OPTION_REAL_ROW("adam_eps", AT(eps), default_, 1e-30, 1,                                                 \
                    "add this to the square root of the second moment")

#define RECOMPUTATION_ROW                                                                                    \
    OPTION_FLAG_ROW("checkpoint_activations", AT(checkpoint_activations),                                    \
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
    OPTION_FLAG_ROW("deepscale", OWN(deepspeed), "the old name of --deepspeed"),                             \
        OPTION_STRING_ROW("deepscale_config", AT(deepspeed_config), NULL, "FILE",                            \
                          "the old name of --deepspeed_config")

/* The number format. */
#define PRECISION_ROWS                                                                                       \
    OPTION_FLAG_ROW(                                                                                         \
        "autocast", AT(precision.autocast),                                                                  \
        "compute in bf16, with fp32 master weights and statistics; without it everything is fp32"),          \
        OPTION_FLAG_ROW("hmp", AT(precision.autocast), "old name of --autocast"),                            \
        OPTION_FLAG_ROW("tf32", AT(precision.tf32),                                                          \
                        "on a GPU, multiply fp32 matrices in TF32, which keeps 10 bits of their mantissa; "  \
                        "ignored on the cpu"),                                                               \
        OPTION_FLAG_ROW("fp16", AT(precision.fp16),                                                          \
                        "compute in fp16 on a GPU, with or without --autocast; in training with fp32 "       \
                        "master weights and a scaled loss, which bf16 does not need; prediction on the cpu " \
                        "rounds to fp16 and computes in fp32"),                                              \
        OPTION_FLAG_ROW("amp", AT(precision.fp16), "the same as --fp16"),                                    \
        OPTION_FLAG_ROW(                                                                                     \
            "fp8", AT(precision.fp8),                                                                        \
            "multiply in the layers in fp8 (e4m3 forward, e5m2 for gradients), and compute all else in "     \
            "bf16; a device without such products multiplies the same numbers in bf16, slower")

#define LOSS_SCALE_ROW                                                                                       \
    OPTION_REAL_ROW(                                                                                         \
        "loss_scale", AT(loss_scale.fixed), "0", 0, 1e9,                                                     \
        "in fp16, multiply the loss by this before backward; 0: off, the scale follows overflows")

/* task/early_stop.h */
#define EARLY_STOPPING_ROWS                                                                                  \
    OPTION_INT_ROW("early_stopping_patience", AT(early.patience), "0", 0, 1e9,                               \
                   "end after N evaluations in a row that do not lower the held-out loss, with the best "    \
                   "weights; 0: off"),                                                                       \
        OPTION_REAL_ROW("early_stopping_delta", AT(early.delta), "0", 0, 1e9,                                \
                        "count an evaluation only if it lowers the held-out loss by more than this")

/* task/health.h */
#define HEALTH_ROWS                                                                                          \
    OPTION_GROUP_ROW("spikes"),                                                                              \
        OPTION_REAL_ROW(                                                                                     \
            "spike_z", AT(health.spike_z), "0", 0, 1e6,                                                      \
            "roll back to the newest checkpoint before a spike, and leave its batch out; a spike is a step " \
            "whose log(loss) or gradient norm is more than X deviations above the mean of the last "         \
            "--spike_window steps (PaLM: Chowdhery et al. 2022, arXiv:2204.02311, section 5.1); 0: off"),    \
        OPTION_INT_ROW(                                                                                      \
            "spike_window", AT(health.spike_window), "128", 2, HEALTH_MOST_WINDOW,                           \
            "number of earlier steps that a step is compared with, as in llm.c; no spike is reported in "    \
            "the first N steps"),                                                                            \
        OPTION_INT_ROW("spike_skip", AT(health.spike_skip), "0", 0, 1e6,                                     \
                       "number of steps before a spike whose batches are left out with its own"),            \
        OPTION_INT_ROW("spike_rollbacks", AT(health.spike_rollbacks), "3", 0, HEALTH_MOST_ROLLBACKS,         \
                       "number of rollbacks to a checkpoint; the next spike ends the run with exit code 99")

/* task/rank_options.h */
#define RANK_ROWS(at)                                                                                        \
    OPTION_GROUP_ROW("several ranks, started by mpirun or srun"),                                            \
        OPTION_INT_ROW(                                                                                      \
            "global_batch_size", (at) + offsetof(struct rank_options, global_batch_size), "0", 0, 1e9,       \
            "number of sequences in an optimizer step of all ranks together, in "                            \
            "--gradient_accumulation_steps micro-batches of all ranks: the same work, however many "         \
            "ranks there are; 0: off, --train_batch_size and its micro-batches are per rank"),               \
        OPTION_INT_ROW(                                                                                      \
            "reproducible_ranks", (at) + offsetof(struct rank_options, reproducible_ranks), "0", 0, 1024,    \
            "give the same bits on 1, 2, 4 ... N ranks, for the same global batch and micro-batches; N "     \
            "/ ranks = 2, 4, 8 take 1, 2, 3 more buffers of gradients on each; 0: off, only the same "       \
            "number of ranks gives the same bits"),                                                          \
        OPTION_INT_ROW("zero_stage", (at) + offsetof(struct rank_options, zero_stage), "0", 0, 3,            \
                       "shard training state over ranks. 0: off; 1: a rank keeps the moments and, in 16 "    \
                       "bits, the fp32 weights of its shard only, with the same bits; 2: also only the "     \
                       "gradients of its shard, which costs a reduction each micro-batch"),                  \
        OPTION_INT_ROW("replica_check_steps", (at) + offsetof(struct rank_options, replica_check_steps),     \
                       "0", 0, 1e12,                                                                         \
                       "compare a hash of all ranks' weights every N steps, and end if a bit differs "       \
                       "(silent corruption: Dixit et al. 2021, arXiv:2102.11245); 0: off, only before the "  \
                       "first step and each checkpoint")

/* task/emulation.h */
#define EMULATION_ROWS(at)                                                                                   \
    OPTION_GROUP_ROW("one rank of many, without the others"),                                                \
        OPTION_INT_ROW("emulate_world", (at) + offsetof(struct emulation_options, world), "0", 0, 4096,      \
                       "run as one rank of N, or of a mesh of N, at the given ZeRO stage: its memory and "   \
                       "its work, on samples of its own; messages are counted, not sent, and nothing is "    \
                       "saved; not under mpirun; 0: off"),                                                   \
        OPTION_INT_ROW("distributed_emulation_rank", (at) + offsetof(struct emulation_options, rank), "-1",  \
                       -1, 4095, "number of the rank that --emulate_world runs as; -1: the first"),          \
        OPTION_STRING_ROW("emulate_links", (at) + offsetof(struct emulation_options, links), "cpu", "NAME",  \
                          "predict the time of the exchange over the links of this machine: h200, h100, "    \
                          "a100, gaudi1, or cpu (10 Gb/s)")

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
        {.name = "profile",                                                                                  \
         .kind = OPTION_BOOL,                                                                                \
         .offset = AT(profile.enabled),                                                                      \
         .default_text = "false",                                                                            \
         .value_name = "BOOL",                                                                               \
         .choices = "pt|pt-full|hltv",                                                                       \
         .help = "time the ops of --profile_steps and write a trace for Perfetto or chrome://tracing"},      \
        OPTION_STRING_ROW("profile_steps", AT(profile.steps), "0", "X:Y",                                    \
                          "profile micro-steps X to Y, counted from 1 in this run"),                         \
        OPTION_STRING_ROW("tensorboard_logdir", AT(profile.directory), "", "DIR",                            \
                          "write the trace into this directory; default: OUTPUT_DIR/profile"),               \
        {.name = "log_memory_usage",                                                                         \
         .kind = OPTION_BOOL,                                                                                \
         .offset = AT(log_memory_usage),                                                                     \
         .default_text = "false",                                                                            \
         .value_name = "BOOL",                                                                               \
         .choices = OPTION_ANY_WORD,                                                                         \
         .help = "log the memory in use and its peak with every line of steps; any word but false, no "      \
                 "and 0 is true"},                                                                           \
        OPTION_FLAG_ROW("log_model_inputs", AT(tensor_log.inputs),                                           \
                        "write the batches of --tensor_logger_max_iterations micro-batches to files"),       \
        OPTION_FLAG_ROW("log_fwd_activations", AT(tensor_log.activations),                                   \
                        "write the outputs of the model's modules to these files"),                          \
        OPTION_FLAG_ROW("log_bwd_grads", AT(tensor_log.gradients),                                           \
                        "write the gradients of modules and parameters to these files"),                     \
        OPTION_INT_ROW("tensor_logger_max_iterations", AT(tensor_log.max_iterations), "0", 0, 1e6,           \
                       "number of micro-batches whose tensors are written; 0: off"),                         \
        OPTION_INT_ROW("tensor_logger_start_step", AT(tensor_log.start_step), "1", 1, 1e12,                  \
                       "number of the first optimizer step, over both phases, whose tensors are written"),   \
        OPTION_STRING_ROW("tensor_logger_path", AT(tensor_log.path), NULL, "DIR",                            \
                          "write the tensors into this directory; default: OUTPUT_DIR/tensor_logger"),       \
        OPTION_STRING_ROW(                                                                                   \
            "migration_log", AT(watch.migration_log), NULL, "FILE",                                          \
            "write to this file which kernel computed each op, by dtype and shape; slower on a GPU"),        \
        {.name = "migration_log_level",                                                                      \
         .kind = OPTION_STRING,                                                                              \
         .offset = AT(watch.log_level),                                                                      \
         .value_name = "N",                                                                                  \
         .choices = "1|2|3",                                                                                 \
         .env = "GPU_MIGRATION_LOG_LEVEL",                                                                   \
         .help = "choose the entries of the migration log: 1 all, 2 modified and mismatch, 3 mismatch; "     \
                 "without --migration_log the log goes to gpu_migration_logs/gpu_migration_PID.log"},        \
        {.name = "plain_ops",                                                                                \
         .kind = OPTION_STRING,                                                                              \
         .offset = AT(watch.plain_ops),                                                                      \
         .value_name = "OPS",                                                                                \
         .env = "KILN_PLAIN_OPS",                                                                            \
         .help = "compute these ops (names separated by commas, or all) by their definition instead of the " \
                 "device's kernels; slow, to find a kernel that makes a difference"},                        \
        OPTION_FLAG_ROW("sync_ops", AT(watch.sync_ops),                                                      \
                        "wait after every op: slower, but a device's error names its op and layer")

/* ---- the scripts and launchers that kiln stands for ---- */

/* Flags that launchers add to a command line. */
#define LAUNCHER_FLAG_ROWS(at)                                                                               \
    {.name = "local_rank",                                                                                   \
     .kind = OPTION_INT,                                                                                     \
     .offset = (at) + offsetof(struct launcher_flags, local_rank),                                           \
     .default_text = "-1",                                                                                   \
     .value_name = "N",                                                                                      \
     .help = "rank given by torchrun or deepspeed; ignored under mpirun and srun, which tell it themselves", \
     .min = -1,                                                                                              \
     .max = 1e6,                                                                                             \
     .of_rank = true},                                                                                       \
        OPTION_STRING_ROW("world_info", (at) + offsetof(struct launcher_flags, world_info), NULL, "BASE64",  \
                          "hosts and slots given by deepspeed: mpirun and srun tell them"),                  \
        OPTION_INT_ROW("num_nodes", (at) + offsetof(struct launcher_flags, num_nodes), NULL, -1, 1e6,        \
                       "set by deepspeed; ignored: mpirun and srun tell it"),                                \
        OPTION_INT_ROW("num_gpus", (at) + offsetof(struct launcher_flags, num_gpus), NULL, -1, 1e6,          \
                       "set by deepspeed; ignored: mpirun and srun tell it"),                                \
        OPTION_STRING_ROW("hostfile", (at) + offsetof(struct launcher_flags, hostfile), NULL, "FILE",        \
                          "set by deepspeed; ignored: mpirun and srun have their own"),                      \
        OPTION_IGNORED_VALUE_ROW("master_addr", "HOST", "mpirun and srun tell where the ranks meet"),        \
        OPTION_IGNORED_VALUE_ROW("master_port", "N", "mpirun and srun tell where the ranks meet"),           \
        OPTION_IGNORED_ROW("no_python", "kiln is a program of its own"),                                     \
        OPTION_IGNORED_ROW("no_local_rank", "mpirun and srun tell it"),                                      \
        OPTION_IGNORED_VALUE_ROW("node_rank", "N", "mpirun and srun tell it")

/* Flags of run_pretraining.py and run_squad.py without a meaning here: accepted, each with a log line that says
 * why, so that an old command line runs unchanged. */
#define REPLACED_FLAG_ROWS                                                                                   \
    OPTION_GROUP_ROW("flags of the replaced scripts"),                                                       \
        OPTION_IGNORED_ROW("use_env", "the replaced script does not use it either"),                         \
        OPTION_IGNORED_ROW(                                                                                  \
            "use_habana",                                                                                    \
            "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),              \
        OPTION_IGNORED_ROW(                                                                                  \
            "use_hpu", "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),   \
        OPTION_IGNORED_ROW(                                                                                  \
            "hpu", "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),       \
        OPTION_MEANS_ROW("no_cuda", AT(device), "cpu", "the same as --device cpu"),                          \
        OPTION_IGNORED_VALUE_ROW("use_lazy_mode", "BOOL", "there is no graph to be lazy about"),             \
        OPTION_IGNORED_ROW("use_torch_compile", "everything is compiled already"),                           \
        OPTION_IGNORED_ROW("compiled_autograd", "everything is compiled already"),                           \
        OPTION_IGNORED_ROW("no_compiled_autograd", "everything is compiled already"),                        \
        OPTION_IGNORED_VALUE_ROW("hmp_bf16", "FILE", "--autocast has no lists of operations"),               \
        OPTION_IGNORED_VALUE_ROW("hmp_fp32", "FILE", "--autocast has no lists of operations"),               \
        OPTION_IGNORED_VALUE_ROW("hmp_opt_level", "NAME", "--autocast has one level"),                       \
        OPTION_IGNORED_ROW("hmp_verbose", "--autocast has no lists of operations")

#endif
