/* stop: SIGTERM, SIGINT and SIGHUP ask the training loop to save and leave; a second one ends the process at once.
 *
 * Before the first step there is nothing to save, so a call that waits, such as opening a pipe that nobody reads, fails
 * after a signal.  In the loop calls go on, and the loop asks between steps. */
#ifndef KILN_CORE_STOP_H
#define KILN_CORE_STOP_H

#include "core/status.h"

/* Installs the handlers; before MPI is initialised, once that is there.  A SIGHUP that is ignored, as under nohup, stays
 * so. */
void stop_install(void);

/* STATUS_PREEMPTED if a signal has come: there is no need to begin. */
struct status stop_before_work(void);

/* The loop begins: from here on calls that wait go on after a signal. */
void stop_begin_work(void);

/* True once a signal has come. */
bool stop_requested(void);

/* What a command ends with, `s`, or STATUS_PREEMPTED if a signal made it fail before the loop. */
struct status stop_explain(struct status s);

#endif
