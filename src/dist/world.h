/* world: the ranks of the run that this process is one of, found from the launcher's variables
 * (core/launcher.h). */
#ifndef KILN_DIST_WORLD_H
#define KILN_DIST_WORLD_H

#include "dist/comm.h"

/* A single process gets comm_self; one of several gets the ranks that were started together.
 * STATUS_UNAVAILABLE says what is missing for several, and what to install or to type instead.  Call it once,
 * before any thread is started. */
struct status world_open(struct comm *world);

/* Leaves the other ranks: `why` is OK at the end of the work, and an error ends them too. */
void world_close(struct comm *world, struct status why);

#endif
