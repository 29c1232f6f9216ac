/* mesh_run: the flags of a mesh (dist/mesh.h) of the commands that pre-train, and the mesh of their ranks. */
#ifndef KILN_CMD_MESH_RUN_H
#define KILN_CMD_MESH_RUN_H

#include "dist/mesh.h"

struct mesh_flags {
    int64_t tensor_parallel, pipeline_parallel;
};

/* Makes the mesh of the world's ranks that the flags ask for, whose replicas are data parallel.  With `tells`
 * the first rank prints where each rank is, if they have parts of the model.  STATUS_USAGE: other ranks were
 * started.  All ranks return the same error, and then there is nothing to close (mesh_close). */
struct status mesh_run_open(struct mesh *m, const struct mesh_flags *f, const struct comm *world, bool tells);

#endif
