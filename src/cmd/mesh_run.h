/* mesh_run: the flags of a mesh (dist/mesh.h) of the commands that pre-train, and the mesh of their ranks. */
#ifndef KILN_CMD_MESH_RUN_H
#define KILN_CMD_MESH_RUN_H

#include "dist/mesh.h"

struct mesh_flags {
    int64_t tensor_parallel, pipeline_parallel;
};

/* `at` is the offset of a struct mesh_flags in the command's own struct. */
#define MESH_ROWS(at)                                                                                        \
    OPTION_INT_ROW("tensor-model-parallel-size", (at) + offsetof(struct mesh_flags, tensor_parallel), "1",   \
                   1, 4096, "number of ranks that share each layer"),                                        \
        OPTION_INT_ROW(                                                                                      \
            "pipeline-model-parallel-size", (at) + offsetof(struct mesh_flags, pipeline_parallel), "1", 1,   \
            4096,                                                                                            \
            "number of ranks that have a part of the layers each; all ranks over the product of both are "   \
            "data parallel")

/* Makes the mesh of the world's ranks that the flags ask for, whose replicas are data parallel.  With `tells`
 * the first rank prints where each rank is, if they have parts of the model.  STATUS_USAGE: other ranks were
 * started.  All ranks return the same error, and then there is nothing to close (mesh_close). */
struct status mesh_run_open(struct mesh *m, const struct mesh_flags *f, const struct comm *world, bool tells);

#endif
