/* rank_run: a command that several ranks run together.  Only the first one talks: it logs, and main prints
 * its error; of the others warnings are shown, with the rank in front. */
#ifndef KILN_CMD_RANK_RUN_H
#define KILN_CMD_RANK_RUN_H

#include "core/launcher.h"
#include "core/option.h"
#include "dist/comm.h"
#include "dist/mesh.h"

/* Finds the ranks that a launcher has started, and gives this one its share of the node's threads.
 * STATUS_USAGE unless all ranks have the same flags, except the paths of files; STATUS_UNAVAILABLE unless
 * they compute with the same kernels. */
struct status rank_run_begin(struct comm *world, const struct command *c, const void *args,
                             const struct launcher_flags *flags);

/* STATUS_USAGE unless all ranks have the same values, also those that came from files of settings. */
struct status rank_run_compare_flags(const struct comm *world, const struct command *c, const void *args);

/* Ends a rank that cannot begin, `s` saying why: if the other ranks are there, all end with its error, which
 * the first one reports; else this process reports it. */
struct status rank_run_refuse(struct status s);

/* Ends the ranks' work together: returns the error of whichever failed, and `s` if none has. */
struct status rank_run_end(struct comm *world, struct status s);

/* Like rank_run_end once all have agreed that they are done: each ends when it has ended the rest of its
 * work. */
struct status rank_run_leave(struct comm *world, struct status s);

/* The flags of a mesh of the ranks. */
struct mesh_flags {
    int64_t tensor_parallel, pipeline_parallel;
};

/* Makes the mesh of the world's ranks that the flags ask for, whose replicas are data parallel.  With `tells`
 * the first rank prints where each rank is, if they have parts of the model.  STATUS_USAGE: other ranks were
 * started.  All ranks return the same error, and then there is nothing to close (mesh_close). */
struct status rank_run_mesh(struct mesh *m, const struct mesh_flags *f, const struct comm *world, bool tells);

#endif
