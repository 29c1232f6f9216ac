#include "cmd/mesh_run.h"

/* Ranks that are left over are in no mesh, which mesh_open says. */
static struct mesh_shape shape_of(const struct mesh_flags *f, int world)
{
    int tp = (int)f->tensor_parallel, pp = (int)f->pipeline_parallel, dp = world / (tp * pp);
    return (struct mesh_shape){.tp = tp, .pp = pp, .dp = dp > 0 ? dp : 1};
}

struct status mesh_run_open(struct mesh *m, const struct mesh_flags *f, const struct comm *world, bool tells)
{
    struct mesh_shape shape = shape_of(f, world->size);
    if (world->emulated != NULL) { /* its place is told with what it takes */
        return status_context(mesh_open(m, world, shape), "--emulate_world");
    }
    TRY(mesh_open(m, world, shape));
    struct status s = status_ok();
    if (mesh_cuts_model(shape)) {
        s = mesh_print_hosts(tells && world->rank == 0 ? stderr : NULL, m, world);
    }
    if (failed(s)) {
        mesh_close(m);
    }
    return s;
}
