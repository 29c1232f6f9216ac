/* launcher_flags: the flags that launchers of the replaced scripts add to a command line, for the option
 * tables of the training commands; `at` is the offset of a struct launcher_flags in the command's own
 * struct. */
#ifndef KILN_CMD_LAUNCHER_FLAGS_H
#define KILN_CMD_LAUNCHER_FLAGS_H

#include "core/launcher.h"

#define LAUNCHER_FLAG_ROWS(at)                                                                               \
    OPTION_INT_ROW("local_rank", (at) + offsetof(struct launcher_flags, local_rank), "-1", -1, 1e6,          \
                   "rank given by torchrun or deepspeed: -1 or 0, since kiln trains in one process"),        \
        OPTION_STRING_ROW(                                                                                   \
            "world_info", (at) + offsetof(struct launcher_flags, world_info), NULL, "BASE64",                \
            "hosts and slots given by deepspeed: one of each, since kiln trains in one process"),            \
        OPTION_INT_ROW("num_nodes", (at) + offsetof(struct launcher_flags, num_nodes), NULL, -1, 1e6,        \
                       "of deepspeed: 1, since kiln trains in one process"),                                 \
        OPTION_INT_ROW("num_gpus", (at) + offsetof(struct launcher_flags, num_gpus), NULL, -1, 1e6,          \
                       "of deepspeed: 1, since kiln trains in one process"),                                 \
        OPTION_STRING_ROW("hostfile", (at) + offsetof(struct launcher_flags, hostfile), NULL, "FILE",        \
                          "of deepspeed: left out, since kiln trains in one process"),                       \
        OPTION_IGNORED_VALUE_ROW("master_addr", "HOST", "one process has nobody to meet"),                   \
        OPTION_IGNORED_VALUE_ROW("master_port", "N", "one process has nobody to meet"),                      \
        OPTION_IGNORED_ROW("no_python", "kiln is a program of its own"),                                     \
        OPTION_IGNORED_ROW("no_local_rank", "there is one process"),                                         \
        OPTION_IGNORED_VALUE_ROW("node_rank", "N", "there is one process")

#endif
