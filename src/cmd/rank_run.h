/* rank_run: a command that several ranks run together.  Only the first one talks: it logs, and main prints
 * its error; of the others warnings are shown, with the rank in front. */
#ifndef KILN_CMD_RANK_RUN_H
#define KILN_CMD_RANK_RUN_H

#include "core/launcher.h"
#include "core/option.h"
#include "dist/comm.h"

/* Finds the ranks that a launcher has started, and gives this one its share of the node's threads.
 * STATUS_USAGE unless all ranks have the same flags, but for the paths of files; STATUS_UNAVAILABLE unless
 * they compute with the same kernels. */
struct status rank_run_begin(struct comm *world, const struct command *c, const void *args,
                             const struct launcher_flags *flags);

/* STATUS_USAGE unless all ranks have the same values, also those that came from files of settings. */
struct status rank_run_compare_flags(const struct comm *world, const struct command *c, const void *args);

/* For a rank that cannot begin, `s` saying why: if the other ranks are there, all end with its error, which
 * the first one says; else this process says it. */
struct status rank_run_refuse(struct status s);

/* Ends the ranks' work together: returns the error of whichever failed, and `s` if none has. */
struct status rank_run_end(struct comm *world, struct status s);

/* The same once all have agreed that they are done: each ends when it has ended the rest of its work. */
struct status rank_run_leave(struct comm *world, struct status s);

#endif
