/* emulation_flags: the flags of task/emulation.h, for the option tables of the commands that pre-train; `at`
 * is the offset of a struct emulation_options in the command's own struct. */
#ifndef KILN_CMD_EMULATION_FLAGS_H
#define KILN_CMD_EMULATION_FLAGS_H

#include "task/emulation.h"

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

#endif
