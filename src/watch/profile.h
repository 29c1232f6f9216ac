/* profile: where the time of a run goes, for a window of micro-steps: `--profile_steps x:y`.
 *
 * A micro-step begins where the one before it ends, so the window includes the batches, updates, evaluations
 * and saves that fall into it.  In the window ops are timed (ops/op_timer.h); at its end a trace is written
 * and a table is logged.  Outside it, and in a run without a profile, nothing is timed.  Only the training
 * thread may call these functions.  They do nothing on NULL or on a profile that is off. */
#ifndef KILN_WATCH_PROFILE_H
#define KILN_WATCH_PROFILE_H

#include "ops/op_timer.h"

#include <stddef.h>

/* The flags of a command. */
struct profile_options {
    bool enabled;          /* --profile */
    const char *steps;     /* --profile_steps: "x:y" or "x,y", or "x" for x alone */
    const char *directory; /* --tensorboard_logdir; NULL or "": OUTPUT_DIR/profile */
    int rank;              /* rank that writes the trace; but for rank 0 the file's name has the number */
};

/* A span of time that is not an op. */
struct profile_span {
    const char *name;
    int64_t number; /* number of the micro-step or the saved step; -1: none */
    int64_t start_ns, end_ns;
};

enum { PROFILE_MAX_SPANS = 1 << 14, PROFILE_MAX_OPS = 1 << 17, PROFILE_PATH_BYTES = 1024 };

struct profile {
    struct exec *x; /* exec whose ops are timed; NULL: off */
    char directory[PROFILE_PATH_BYTES];
    int rank;
    int64_t first, last; /* micro-steps of the window, from 1 */
    int64_t micro_step;  /* the current one; 0: none yet */
    bool recording;
    struct op_timer timer;
    struct profile_span *spans; /* [n_spans] micro-steps and phases */
    struct profile_span *saves; /* [n_saves] */
    int64_t n_spans, n_saves;
    int64_t n_left_out;
    struct profile_span step, phase, save; /* open; name NULL: none */
};

/* STATUS_USAGE unless `steps` is "x:y" with 0 <= x <= y and y >= 1, or "x".  As in the replaced scripts, x =
 * 0 means 1, and "0" means "1". */
struct status profile_check(const struct profile_options *o);

/* Prepares a profile of what runs on `x`; off unless enabled.  Allocates all memory that the profile
 * needs. */
struct status profile_open(struct profile *p, const struct profile_options *o, const char *output_dir,
                           struct exec *x);

/* Ends an open window, then frees everything; safe on a zeroed struct. */
void profile_close(struct profile *p);

/* The next micro-step begins. */
void profile_micro_step(struct profile *p);

/* Ends the current phase and begins one of this name; NULL: none. */
void profile_phase(struct profile *p, const char *name);

/* A checkpoint begins to be written in the background; and it was written, from start_ns to end_ns. */
void profile_save_begun(struct profile *p, int64_t step);
void profile_save_ended(struct profile *p, int64_t start_ns, int64_t end_ns);

#endif
