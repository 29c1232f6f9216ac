/* run_log_flags: the flags for logs and profiles of a run, for the option tables of the training commands;
 * AT(field) is the field's offset in the command's own struct. */
#ifndef KILN_CMD_RUN_LOG_FLAGS_H
#define KILN_CMD_RUN_LOG_FLAGS_H

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

#endif
