/* launcher_guard: what becomes mpirun or srun.  If the supervisor is killed, the ranks shall save and leave,
 * so that the next start can go on: the launcher then gets SIGUSR1, which it passes on to them, and is not
 * ended by writing to a pipe that nobody reads any more. */
#ifndef KILN_LAUNCH_LAUNCHER_GUARD_H
#define KILN_LAUNCH_LAUNCHER_GUARD_H

#include "core/words.h"

/* Replaces this process by the program.  Returns only if it cannot be started: STATUS_UNAVAILABLE; or if the
 * supervisor is gone: STATUS_PREEMPTED. */
struct status launcher_guard_run(const struct words *program);

#endif
