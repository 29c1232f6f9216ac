/* line_pace: when a run writes a line for people where no terminal shows a live one: into the log of a
 * container, a Slurm file.
 *
 * The rule: the first step and the last have a line, and between them one comes at most every
 * LINE_PACE_SECONDS; a step that lasts longer reports how far it is, and a run whose steps are that
 * long does not report more often than every LINE_PACE_STEP_SECONDS.  A user who asks for the lines of every
 * n-th step gets those. */
#ifndef KILN_REPORT_LINE_PACE_H
#define KILN_REPORT_LINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { LINE_PACE_SECONDS = 10, LINE_PACE_STEP_SECONDS = 30 };

struct line_pace {
    int64_t every;   /* steps between lines; 0: by the clock */
    int64_t last_ns; /* the latest line; 0: none yet */
};

/* After a step: whether its line is due now.  `is_end`: the step is the first of the run, or the last. */
bool line_pace_after_step(struct line_pace *p, int64_t step, bool is_end, int64_t now_ns);

/* Within a step that began at begin_ns: whether a line of its progress is due now. */
bool line_pace_in_step(struct line_pace *p, int64_t begin_ns, int64_t now_ns);

#endif
