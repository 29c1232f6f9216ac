/* stop: SIGTERM, SIGINT, SIGHUP and SIGUSR1 ask the training loop to save and exit; a second one, other than
 * SIGUSR1, ends the process at once.  SIGUSR1 is what mpirun and srun pass on, and what Slurm sends ahead of
 * a preemption, perhaps to several processes of a job that pass it on to the same rank.
 *
 * Before the first step there is nothing to save, so a signal makes a blocking call, such as opening a pipe
 * that nobody reads, fail.  Inside the loop such calls are restarted, and the loop checks for a signal
 * between the micro-batches of a step and between steps. */
#ifndef KILN_CORE_STOP_H
#define KILN_CORE_STOP_H

#include "core/status.h"

/* A program that kiln is part of begins a run: it has its own handlers, so that stop_install does nothing,
 * and stop_request asks in a signal's stead, from any thread. */
void stop_begin_requests(void);
void stop_request(void);

/* Installs the handlers; when kiln has MPI, call it before MPI is initialised.  A SIGHUP that is ignored, as
 * under nohup, stays ignored. */
void stop_install(void);

/* STATUS_PREEMPTED if a signal has come, so that work need not begin. */
struct status stop_before_work(void);

/* The loop begins: from here on blocking calls are restarted after a signal. */
void stop_begin_work(void);

/* True once a signal has come. */
bool stop_requested(void);

/* What asks the run to end, for messages: "a signal", or "a call". */
const char *stop_cause(void);

/* The status that a command ends with: STATUS_PREEMPTED if a signal made it fail before the loop, else
 * `s`. */
struct status stop_explain(struct status s);

#endif
