/* rank_run: a command that several ranks run together.  Only the first one talks: it logs, and main prints its error; of the others
 * warnings are shown, with the rank in front. */
#ifndef KILN_CMD_RANK_RUN_H
#define KILN_CMD_RANK_RUN_H

#include "core/launcher.h"
#include "dist/comm.h"

/* Finds the ranks that a launcher has started, and gives this one its share of the node's threads. */
struct status rank_run_begin(struct comm *world, const struct launcher_flags *flags);

/* Ends the ranks' work together: returns the error of whichever failed, and `s` if none has. */
struct status rank_run_end(struct comm *world, struct status s);

/* The same once all have agreed that they are done: each ends when it has ended the rest of its work. */
struct status rank_run_leave(struct comm *world, struct status s);

#endif
