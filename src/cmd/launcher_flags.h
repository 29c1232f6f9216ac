/* launcher_flags: the flags that launchers of the replaced scripts add to a command line, for the option
 * tables of the training commands; `at` is the offset of a struct launcher_flags in the command's own
 * struct. */
#ifndef KILN_CMD_LAUNCHER_FLAGS_H
#define KILN_CMD_LAUNCHER_FLAGS_H

#include "core/launcher.h"

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

#endif
