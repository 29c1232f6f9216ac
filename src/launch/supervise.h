/* supervise: runs a job until it is done: passes its output on, turns a signal into "save and leave", says
 * who failed and why, and starts it again from the newest checkpoint. */
#ifndef KILN_LAUNCH_SUPERVISE_H
#define KILN_LAUNCH_SUPERVISE_H

#include "launch/mpi_command.h"
#include "launch/program.h"

struct supervise {
    struct launch_job *job;        /* hosts that are lost are removed from it */
    const struct program *program; /* what the ranks run */
    int64_t max_restarts;          /* restarts in a row without a new checkpoint */
    /* hosts that are enough for the job to continue when others are lost; 0: all are needed */
    int64_t min_hosts;
    /* wait before the second restart in a row; the first is at once, each further one waits twice as long */
    double backoff_s;
    double grace_s;    /* time for the launcher to end by itself after a rank's error */
    bool checks_hosts; /* ask them over ssh before a restart */
};

/* Returns when the job is done (OK), received a signal to leave (STATUS_PREEMPTED), or cannot continue: a
 * status with the job's own exit code, whose message names rank, host, step and cause. */
struct status supervise_run(const struct supervise *s);

#endif
