/* job_watch: what a job of several ranks said before it ended: which rank failed, on which host, why.
 *
 * Read from standard error: kiln's own `kiln: error: ...`, the lines of launch/rank_guard.h, and the
 * sentences of Open MPI 4.1 (orte/tools/orterun/help-orterun.txt, orte/mca/errmgr/base/help-errmgr-base.txt)
 * and of srun (slurm's launch plug-in).  The step of a rank is read from its log, OUTPUT_DIR/log.jsonl. */
#ifndef KILN_LAUNCH_JOB_WATCH_H
#define KILN_LAUNCH_JOB_WATCH_H

#include "core/buf.h"
#include "launch/host_list.h"

#include <stdint.h>

struct job_watch {
    struct buf line;            /* the part of a line that has come so far */
    int64_t rank;               /* the first rank that failed; -1: not reported */
    char host[HOST_NAME_BYTES]; /* host of that rank; "": not reported */
    char cause[320];            /* the first error reported, or the launcher's own words; "" if none */
    char ending[96];            /* how the rank ended, in its guard's words; "" if it could not say */
    int code;                   /* the ending as an exit code; 0: not reported */
    bool is_settled;            /* rank and host are sure: its guard's, or those of a host that was lost */
    bool has_not_begun;         /* srun could not start it */
    bool is_certain;            /* the cause is a rank's own */
    /* the line cannot work, however often it is started: a program is missing, too few slots */
    bool is_hopeless;
    int64_t failed_ns; /* when the first sign of failure came; 0: none yet */
};

/* Frees the line that it reads; safe on a zeroed struct. */
void job_watch_fini(struct job_watch *w);

/* Takes more of the job's standard error. */
void job_watch_take(struct job_watch *w, const char *bytes, size_t n);

/* Fills in the host of a rank that was reported by its number alone, from the hosts in the order of their
 * ranks. */
void job_watch_find_host(struct job_watch *w, const struct host_list *hosts);

/* The size of OUTPUT_DIR/log.jsonl, 0 if there is none; and the last step after its byte `begin`; -1:
 * none. */
int64_t job_watch_log_bytes(const char *output_dir);
int64_t job_watch_last_step(const char *output_dir, int64_t begin);

/* The highest N of OUTPUT_DIR/COMMAND/ckpt_N, where the command keeps its own next to those of others, or of
 * OUTPUT_DIR/ckpt_N; -1: none. */
int64_t job_watch_newest_checkpoint(const char *output_dir, const char *command);

/* The exit code to judge by, of a job that ended with `code`: that of the first rank that failed, if `code`
 * is of ranks that were ended because of it; STATUS_IO if ranks could not be started, and the launcher ended
 * with 0. */
int job_watch_code(const struct job_watch *w, int code);

/* The next action of a supervisor after this exit code (docs/exit_codes.md). */
enum job_next { JOB_DONE, JOB_AGAIN, JOB_NEVER };
enum job_next job_watch_next(const struct job_watch *w, int code);

#endif
