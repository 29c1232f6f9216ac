/* health_flags: the flags of task/health.h; AT(field) is the offset of a field of the command's options. */
#ifndef KILN_CMD_HEALTH_FLAGS_H
#define KILN_CMD_HEALTH_FLAGS_H

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

#endif
