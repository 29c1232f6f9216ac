#include "cmd/mesh_run.h"

/* Ranks that are left over are in no mesh, which mesh_open says. */
static struct mesh_shape shape_of(const struct mesh_flags *f, int world)
{
    int tp = (int)f->tensor_parallel, pp = (int)f->pipeline_parallel, dp = world / (tp * pp);
    return (struct mesh_shape){.tp = tp, .pp = pp, .dp = dp > 0 ? dp : 1};
}

struct status mesh_run_open(struct mesh *m, const struct mesh_flags *f, const struct comm *world, bool tells,
                            struct rank_options *ranks)
{
    struct mesh_shape shape = shape_of(f, world->size);
    *m = (struct mesh){0};
    if (shape.tp * shape.pp == 1) {
        return status_ok();
    }
    if (world->emulated != NULL) { /* its place is told with what it takes */
        TRY(status_context(mesh_open(m, world, shape), "--emulate_world"));
        ranks->mesh = m;
        return status_ok();
    }
    TRY(mesh_open(m, world, shape));
    struct status s = mesh_print_hosts(tells && world->rank == 0 ? stderr : NULL, m, world);
    if (failed(s)) {
        mesh_close(m);
        return s;
    }
    ranks->mesh = m;
    return status_ok();
}

void mesh_run_close(struct mesh *m, struct rank_options *ranks)
{
    ranks->mesh = NULL;
    mesh_close(m);
}
