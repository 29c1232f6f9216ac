/* choice_timing: how long a candidate takes on a device, so that candidates can be compared (cuda_choices.h).  Plain C: the
 * device is behind a table of functions, so that tests run this without a GPU.
 *
 * A device that has been idle runs slowly at first, and a launch costs the host more than a short kernel costs the device.
 * So the first timing of all waits until clocks have risen, and what is short is recorded several times in a row and timed
 * while it is replayed, as steps and answers are. */
#ifndef KILN_OPS_CUDA_CHOICE_CHOICE_TIMING_H
#define KILN_OPS_CUDA_CHOICE_CHOICE_TIMING_H

#include <stdbool.h>

enum { CHOICE_TIMING_RUNS = 7 }; /* of which the median counts */

/* A stream of a device.  What fails returns false, NULL or a negative time. */
struct choice_stream {
    bool (*mark)(void *self, int i); /* mark i, at most CHOICE_TIMING_RUNS, behind what was given */
    bool (*wait)(void *self);        /* for all that was given */
    double (*elapsed)(void *self, int from, int to); /* microseconds between marks that were passed */
    bool (*record_begin)(void *self);                /* what is given now is written down instead */
    void *(*record_end)(void *self);
    bool (*replay)(void *self, void *recording);
    void (*forget)(void *self, void *recording);
    void *self;
    bool is_warm; /* something was timed before */
};

/* Median microseconds of `run`, which gives the same work to the stream again and again; infinite if it or its recording
 * is refused: steps are recorded, so what cannot be is of no use. */
double choice_timing_run(struct choice_stream *s, bool (*run)(void *work), void *work);

#endif
