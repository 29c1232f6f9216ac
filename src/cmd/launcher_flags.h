/* launcher_flags: the flags that launchers of the replaced scripts add to a command line, for the tables of
 * the commands that train; `at` is the offset of a struct launcher_flags in that of the command. */
#ifndef KILN_CMD_LAUNCHER_FLAGS_H
#define KILN_CMD_LAUNCHER_FLAGS_H

#include "core/launcher.h"

#define LAUNCHER_FLAG_ROWS(at)                                                                               \
    OPTION_INT_ROW("local_rank", (at) + offsetof(struct launcher_flags, local_rank), "-1", -1, 1e6,          \
                   "as torchrun and deepspeed number processes: -1 or 0, since kiln trains in one"),         \
        OPTION_STRING_ROW(                                                                                   \
            "world_info", (at) + offsetof(struct launcher_flags, world_info), NULL, "BASE64",                \
            "as deepspeed tells its hosts and slots: one of each, since kiln trains in one process")

#endif
