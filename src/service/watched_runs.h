/* watched_runs: runs that are watched over HTTP: the lines of their logs as they come, and texts of a decoder
 * at its checkpoints.  A thread looks at the logs and sends; another makes the texts.
 * Runs are only read. */
#ifndef KILN_SERVICE_WATCHED_RUNS_H
#define KILN_SERVICE_WATCHED_RUNS_H

#include "service/call.h"

struct watch_options {
    const struct served_source *runs; /* [n_runs] output directories, borrowed */
    int n_runs;
    const char *prompt; /* prompt of the texts, borrowed; "": none are made */
    struct session_options session;
};

struct watched_runs;

/* Starts the threads that watch the runs; no runs, no threads.  STATUS_USAGE: two of one name, or a path that
 * is no directory; a run may have no log yet.  STATUS_MEMORY. */
struct status watched_runs_create(struct watched_runs **w, const struct watch_options *o);

/* Ends all streams; no more begin. */
void watched_runs_end(struct watched_runs *w);
void watched_runs_destroy(struct watched_runs *w); /* safe on NULL */

/* The names of all runs. */
json_t *watched_runs_names(const struct watched_runs *w);

/* The number of a run by its name; -1: there is none. */
int watched_runs_find(const struct watched_runs *w, const char *name);

/* Makes the call a stream of events of a run, or of all with run -1, which ends when the client leaves or the
 * server ends: events by the run's name, each with a line of its log as it is; {"event": "log"} before its
 * first line; and {"event": "sample", "step", "prompt", "text"} for each text.  Of a log that is long when
 * the stream begins, every k-th step is sent. */
void watched_runs_follow(struct watched_runs *w, int run, struct call *c);

#endif
