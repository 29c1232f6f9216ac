#include "cmd/settings.h"

#include "cmd/rank_run.h"
#include "core/launcher.h"
#include "dev/precision.h"
#include "report/tensor_log.h"
#include "task/early_stop.h"
#include "task/emulation.h"
#include "task/health.h"
#include "task/rank_options.h"
#include "watch/profile.h"
#include "watch/run_watch.h"

#include <stddef.h>

const struct option settings_precision[] = {
    OPTION_FLAG_ROW(
        "autocast", offsetof(struct precision_flags, autocast),
        "compute in bf16, with fp32 master weights and statistics; without it everything is fp32"),
    OPTION_SAME_ROW("hmp", "autocast", "old name of --autocast"),
    OPTION_FLAG_ROW("tf32", offsetof(struct precision_flags, tf32),
                    "on a GPU, multiply fp32 matrices in TF32, which keeps 10 bits of their mantissa; "
                    "ignored on the cpu"),
    OPTION_FLAG_ROW("fp16", offsetof(struct precision_flags, fp16),
                    "compute in fp16 on a GPU, with or without --autocast; in training with fp32 "
                    "master weights and a scaled loss, which bf16 does not need; prediction on the cpu "
                    "rounds to fp16 and computes in fp32"),
    OPTION_SAME_ROW("amp", "fp16", "the same as --fp16"),
    OPTION_FLAG_ROW(
        "fp8", offsetof(struct precision_flags, fp8),
        "multiply in the layers in fp8 (e4m3 forward, e5m2 for gradients), and compute all else in "
        "bf16; a device without such products multiplies the same numbers in bf16, slower"),
    {0},
};

const struct option settings_early_stopping[] = {
    OPTION_INT_ROW("early_stopping_patience", offsetof(struct early_stop_options, patience), "0", 0, 1e9,
                   "end after N evaluations in a row that do not lower the held-out loss, with the best "
                   "weights; 0: off"),
    OPTION_REAL_ROW("early_stopping_delta", offsetof(struct early_stop_options, delta), "0", 0, 1e9,
                    "count an evaluation only if it lowers the held-out loss by more than this"),
    {0},
};

const struct option settings_health[] = {
    OPTION_GROUP_ROW("spikes"),
    OPTION_REAL_ROW(
        "spike_z", offsetof(struct health_options, spike_z), "0", 0, 1e6,
        "roll back to the newest checkpoint before a spike, and leave its batch out; a spike is a step "
        "whose log(loss) or gradient norm is more than X deviations above the mean of the last "
        "--spike_window steps (PaLM: Chowdhery et al. 2022, arXiv:2204.02311, section 5.1); 0: off"),
    OPTION_INT_ROW(
        "spike_window", offsetof(struct health_options, spike_window), "128", 2, HEALTH_MOST_WINDOW,
        "number of earlier steps that a step is compared with, as in llm.c; no spike is reported in "
        "the first N steps"),
    OPTION_INT_ROW("spike_skip", offsetof(struct health_options, spike_skip), "0", 0, 1e6,
                   "number of steps before a spike whose batches are left out with its own"),
    OPTION_INT_ROW("spike_rollbacks", offsetof(struct health_options, spike_rollbacks), "3", 0,
                   HEALTH_MOST_ROLLBACKS,
                   "number of rollbacks to a checkpoint; the next spike ends the run with exit code 99"),
    {0},
};

const struct option settings_ranks[] = {
    OPTION_GROUP_ROW("several ranks, started by mpirun or srun"),
    OPTION_INT_ROW("global_batch_size", offsetof(struct rank_options, global_batch_size), "0", 0, 1e9,
                   "number of sequences in an optimizer step of all ranks together, in "
                   "--gradient_accumulation_steps micro-batches of all ranks: the same work, however many "
                   "ranks there are; 0: off, --train_batch_size and its micro-batches are per rank"),
    OPTION_INT_ROW(
        "reproducible_ranks", offsetof(struct rank_options, reproducible_ranks), "0", 0, 1024,
        "give the same bits on 1, 2, 4 ... N ranks, for the same global batch and micro-batches; N "
        "/ ranks = 2, 4, 8 take 1, 2, 3 more buffers of gradients on each; 0: off, only the same "
        "number of ranks gives the same bits"),
    OPTION_INT_ROW("zero_stage", offsetof(struct rank_options, zero_stage), "0", 0, 3,
                   "shard training state over ranks. 0: off; 1: a rank keeps the moments and, in 16 "
                   "bits, the fp32 weights of its shard only, with the same bits; 2: also only the "
                   "gradients of its shard, which costs a reduction each micro-batch"),
    OPTION_INT_ROW("replica_check_steps", offsetof(struct rank_options, replica_check_steps), "0", 0, 1e12,
                   "compare a hash of all ranks' weights every N steps, and end if a bit differs "
                   "(silent corruption: Dixit et al. 2021, arXiv:2102.11245); 0: off, only before the "
                   "first step and each checkpoint"),
    {0},
};

const struct option settings_emulation[] = {
    OPTION_GROUP_ROW("one rank of many, without the others"),
    OPTION_INT_ROW("emulate_world", offsetof(struct emulation_options, world), "0", 0, 4096,
                   "run as one rank of N, or of a mesh of N, at the given ZeRO stage: its memory and "
                   "its work, on samples of its own; messages are counted, not sent, and nothing is "
                   "saved; not under mpirun; 0: off"),
    OPTION_INT_ROW("distributed_emulation_rank", offsetof(struct emulation_options, rank), "-1", -1, 4095,
                   "number of the rank that --emulate_world runs as; -1: the first"),
    OPTION_STRING_ROW("emulate_links", offsetof(struct emulation_options, links), "cpu", "NAME",
                      "predict the time of the exchange over the links of this machine: h200, h100, "
                      "a100, gaudi1, or cpu (10 Gb/s)"),
    {0},
};

const struct option settings_launcher[] = {
    {.name = "local_rank",
     .kind = OPTION_INT,
     .offset = offsetof(struct launcher_flags, local_rank),
     .default_text = "-1",
     .value_name = "N",
     .help = "rank given by torchrun or deepspeed; ignored under mpirun and srun, which tell it themselves",
     .min = -1,
     .max = 1e6,
     .of_rank = true},
    OPTION_STRING_ROW("world_info", offsetof(struct launcher_flags, world_info), NULL, "BASE64",
                      "hosts and slots given by deepspeed: mpirun and srun tell them"),
    OPTION_INT_ROW("num_nodes", offsetof(struct launcher_flags, num_nodes), NULL, -1, 1e6,
                   "set by deepspeed; ignored: mpirun and srun tell it"),
    OPTION_INT_ROW("num_gpus", offsetof(struct launcher_flags, num_gpus), NULL, -1, 1e6,
                   "set by deepspeed; ignored: mpirun and srun tell it"),
    OPTION_STRING_ROW("hostfile", offsetof(struct launcher_flags, hostfile), NULL, "FILE",
                      "set by deepspeed; ignored: mpirun and srun have their own"),
    OPTION_IGNORED_VALUE_ROW("master_addr", "HOST", "mpirun and srun tell where the ranks meet"),
    OPTION_IGNORED_VALUE_ROW("master_port", "N", "mpirun and srun tell where the ranks meet"),
    OPTION_IGNORED_ROW("no_python", "kiln is a program of its own"),
    OPTION_IGNORED_ROW("no_local_rank", "mpirun and srun tell it"),
    OPTION_IGNORED_VALUE_ROW("node_rank", "N", "mpirun and srun tell it"),
    {0},
};

const struct option settings_replaced[] = {
    OPTION_GROUP_ROW("flags of the replaced scripts"),
    OPTION_IGNORED_ROW("use_env", "the replaced script does not use it either"),
    OPTION_IGNORED_ROW("use_habana",
                       "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),
    OPTION_IGNORED_ROW("use_hpu",
                       "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),
    OPTION_IGNORED_ROW("hpu",
                       "--device says where to compute: auto is the cpu, cuda a GPU; Gaudi is not built"),
    OPTION_MEANS_ROW("no_cuda", 0, "cpu", "the same as --device cpu"),
    OPTION_IGNORED_VALUE_ROW("use_lazy_mode", "BOOL", "there is no graph to be lazy about"),
    OPTION_IGNORED_ROW("use_torch_compile", "everything is compiled already"),
    OPTION_IGNORED_ROW("compiled_autograd", "everything is compiled already"),
    OPTION_IGNORED_ROW("no_compiled_autograd", "everything is compiled already"),
    OPTION_IGNORED_VALUE_ROW("hmp_bf16", "FILE", "--autocast has no lists of operations"),
    OPTION_IGNORED_VALUE_ROW("hmp_fp32", "FILE", "--autocast has no lists of operations"),
    OPTION_IGNORED_VALUE_ROW("hmp_opt_level", "NAME", "--autocast has one level"),
    OPTION_IGNORED_ROW("hmp_verbose", "--autocast has no lists of operations"),
    {0},
};

const struct option settings_profile[] = {
    {.name = "profile",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct profile_options, enabled),
     .default_text = "false",
     .value_name = "BOOL",
     .choices = "pt|pt-full|hltv",
     .help = "time the ops of --profile_steps and write a trace for Perfetto or chrome://tracing"},
    OPTION_STRING_ROW("profile_steps", offsetof(struct profile_options, steps), "0", "X:Y",
                      "profile micro-steps X to Y, counted from 1 in this run"),
    OPTION_STRING_ROW("tensorboard_logdir", offsetof(struct profile_options, directory), "", "DIR",
                      "write the trace into this directory; default: OUTPUT_DIR/profile"),
    {0},
};

const struct option settings_tensor_log[] = {
    OPTION_FLAG_ROW("log_model_inputs", offsetof(struct tensor_log_options, inputs),
                    "write the batches of --tensor_logger_max_iterations micro-batches to files"),
    OPTION_FLAG_ROW("log_fwd_activations", offsetof(struct tensor_log_options, activations),
                    "write the outputs of the model's modules to these files"),
    OPTION_FLAG_ROW("log_bwd_grads", offsetof(struct tensor_log_options, gradients),
                    "write the gradients of modules and parameters to these files"),
    OPTION_INT_ROW("tensor_logger_max_iterations", offsetof(struct tensor_log_options, max_iterations), "0",
                   0, 1e6, "number of micro-batches whose tensors are written; 0: off"),
    OPTION_INT_ROW("tensor_logger_start_step", offsetof(struct tensor_log_options, start_step), "1", 1, 1e12,
                   "number of the first optimizer step, over both phases, whose tensors are written"),
    OPTION_STRING_ROW("tensor_logger_path", offsetof(struct tensor_log_options, path), NULL, "DIR",
                      "write the tensors into this directory; default: OUTPUT_DIR/tensor_logger"),
    {0},
};

const struct option settings_watch[] = {
    OPTION_STRING_ROW(
        "migration_log", offsetof(struct run_watch_options, migration_log), NULL, "FILE",
        "write to this file which kernel computed each op, by dtype and shape; slower on a GPU"),
    {.name = "migration_log_level",
     .kind = OPTION_STRING,
     .offset = offsetof(struct run_watch_options, log_level),
     .value_name = "N",
     .choices = "1|2|3",
     .env = "GPU_MIGRATION_LOG_LEVEL",
     .help = "choose the entries of the migration log: 1 all, 2 modified and mismatch, 3 mismatch; "
             "without --migration_log the log goes to gpu_migration_logs/gpu_migration_PID.log"},
    OPTION_ENV_ROW("plain_ops", offsetof(struct run_watch_options, plain_ops), NULL, "OPS", "KILN_PLAIN_OPS",
                   "compute these ops (names separated by commas, or all) by their definition instead of the "
                   "device's kernels; slow, to find a kernel that makes a difference"),
    OPTION_FLAG_ROW("sync_ops", offsetof(struct run_watch_options, sync_ops),
                    "wait after every op: slower, but a device's error names its op and layer"),
    {0},
};

const struct option settings_mesh[] = {
    OPTION_INT_ROW("tensor-model-parallel-size", offsetof(struct mesh_flags, tensor_parallel), "1", 1, 4096,
                   "number of ranks that share each layer"),
    OPTION_INT_ROW(
        "pipeline-model-parallel-size", offsetof(struct mesh_flags, pipeline_parallel), "1", 1, 4096,
        "number of ranks that have a part of the layers each; all ranks over the product of both are "
        "data parallel"),
    {0},
};
