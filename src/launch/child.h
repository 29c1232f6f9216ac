/* child: other programs, started and waited for with a deadline. */
#ifndef KILN_LAUNCH_CHILD_H
#define KILN_LAUNCH_CHILD_H

#include "core/buf.h"
#include "core/words.h"

#include <sys/types.h>

/* Starts a program in a process group of its own, so that a Ctrl-C reaches only this process, which decides.
 * It reads /dev/null and has no signal blocked.  Of its standard output and standard error those whose
 * descriptor is asked for (not NULL) become pipes, whose reading end the caller closes; asked for as one,
 * they share a pipe.  `variables` (NULL: none) are set on top of this process's own.  STATUS_UNAVAILABLE:
 * there is no such program. */
struct status child_start(pid_t *pid, int *out, int *err, const struct words *line,
                          const struct words *variables);

/* Starts a program in this process's own group, with its input and output: what ends the group ends it
 * too. */
struct status child_start_rank(pid_t *pid, const struct words *line);

/* A program that is run for what it prints. */
struct child_job {
    struct words line;
    struct buf output; /* standard output and standard error, in the order of arrival */
    /* exit code; 128 + signal; -1: the program was not started, or took too long and was killed */
    int code;
    bool timed_out;
    double seconds;
};

/* Runs the jobs, at most n_parallel at a time, each for at most limit_s; all are ended deadline_s after the
 * call. */
struct status child_jobs_run(struct child_job *jobs, int n, int n_parallel, double limit_s,
                             double deadline_s);
void child_jobs_fini(struct child_job *jobs, int n);

/* The exit code of a status of waitpid, as a shell has it: 128 + signal after a signal. */
int child_code(int wait_status);

#endif
