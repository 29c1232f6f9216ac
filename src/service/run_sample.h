/* run_sample: the text of a decoder at a checkpoint of its run: the continuation of one prompt, with the same
 * random numbers at each, so that texts differ by the weights alone. */
#ifndef KILN_SERVICE_RUN_SAMPLE_H
#define KILN_SERVICE_RUN_SAMPLE_H

#include "core/buf.h"
#include "serve/session.h"

/* The highest step of the checkpoints in a run's directory; -1: there is none. */
int64_t run_sample_newest(const char *directory);

/* Opens the checkpoint of this step, appends its continuation of the prompt, and closes it.  STATUS_USAGE or
 * STATUS_DATA: it is no decoder, or it is gone; STATUS_PREEMPTED: `is_wanted` says no. */
struct status run_sample_make(struct buf *text, const char *directory, int64_t step,
                              const struct session_options *o, const char *prompt,
                              bool (*is_wanted)(void *self), void *self);

#endif
