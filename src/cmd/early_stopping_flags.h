/* early_stopping_flags: the flags of task/early_stop.h, of every command that trains; AT(field) is the offset
 * of a field of its options. */
#ifndef KILN_CMD_EARLY_STOPPING_FLAGS_H
#define KILN_CMD_EARLY_STOPPING_FLAGS_H

#define EARLY_STOPPING_ROWS                                                                                  \
    OPTION_INT_ROW("early_stopping_patience", AT(early.patience), "0", 0, 1e9,                               \
                   "end after N evaluations in a row that do not lower the held-out loss, with the best "    \
                   "weights; 0: off"),                                                                       \
        OPTION_REAL_ROW("early_stopping_delta", AT(early.delta), "0", 0, 1e9,                                \
                        "count an evaluation only if it lowers the held-out loss by more than this")

#endif
