/* prefetch: makes the next step's batches while the trainer uses the current ones.
 *
 * A thread fills the one of two slots that the trainer does not use.  The steps are those of the source, so
 * the thread changes nothing but the time. */
#ifndef KILN_DATA_PREFETCH_H
#define KILN_DATA_PREFETCH_H

#include "data/batch_source.h"

#include <pthread.h>

struct prefetch_slot {
    struct batch_step step;
    struct status status; /* status of filling it */
    int64_t number;       /* the last step that was finished in it */
};

struct prefetch {
    struct batch_source source;
    struct prefetch_slot slots[2]; /* step s is in slot s % 2 */
    int64_t next;                  /* the step that prefetch_next returns next */
    int64_t last;                  /* the last step to make */
    bool stopping;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Starts making part `part` of n_parts (batch_step_init_part) of the steps first, first + 1, ... last.  The
 * source's `self` must outlive the prefetch, which must not be moved. */
struct status prefetch_open(struct prefetch *p, const struct batch_source *source, int part, int n_parts,
                            bool in_turn, int64_t first, int64_t last);

/* Host memory of the two slots, of n_micro micro-batches each. */
size_t prefetch_bytes(const struct batch_layout *layout, struct batch_limits limits, int64_t n_micro);

/* Stops the thread, which first finishes its current step, and frees everything. */
void prefetch_close(struct prefetch *p);

/* Waits for the next step, at most `last`; *step is borrowed until the next call.  Returns the error of
 * making it. */
struct status prefetch_next(struct prefetch *p, const struct batch_step **step);

#endif
