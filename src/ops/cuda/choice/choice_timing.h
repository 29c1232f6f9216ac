/* choice_timing: measures how long a candidate takes on a device, to compare candidates (cuda_choices.h).
 * Plain C: the device is behind a table of functions, so that tests run this without a GPU.
 *
 * A device that has been idle runs slowly at first, and a launch costs the host more than a short kernel
 * costs the device. So the very first timing waits until clocks have risen.  Short work is recorded several
 * times in a row, and the replay is timed; steps and answers are replayed too. */
#ifndef KILN_OPS_CUDA_CHOICE_CHOICE_TIMING_H
#define KILN_OPS_CUDA_CHOICE_CHOICE_TIMING_H

#include <stdbool.h>

enum { CHOICE_TIMING_RUNS = 7 }; /* runs, of which the median counts */

/* A CUDA stream.  A failure returns false, NULL or a negative time. */
struct choice_stream {
    /* queues mark i, at most CHOICE_TIMING_RUNS, after the work given so far */
    bool (*mark)(void *self, int i);
    bool (*wait)(void *self);                        /* waits for all work given so far */
    double (*elapsed)(void *self, int from, int to); /* microseconds between two marks that were reached */
    bool (*record_begin)(void *self);                /* from now on work is recorded instead of run */
    void *(*record_end)(void *self);
    bool (*replay)(void *self, void *recording);
    void (*forget)(void *self, void *recording);
    void *self;
    bool is_warm; /* something has been timed already */
};

/* Median microseconds of `run`, which gives the same work to the stream at each call.  Infinite if it or its
 * recording fails: steps are recorded, so work that cannot be recorded is useless. */
double choice_timing_run(struct choice_stream *s, bool (*run)(void *work), void *work);

#endif
