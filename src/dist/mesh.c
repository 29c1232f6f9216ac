#include "dist/mesh.h"

#include "core/host.h"

#include <stdlib.h>

static int64_t size_of(struct mesh_shape s)
{
    return (int64_t)s.tp * s.pp * s.dp;
}

bool mesh_cuts_model(struct mesh_shape s)
{
    return s.tp > 1 || s.pp > 1;
}

struct mesh mesh_of_replicas(const struct comm *world)
{
    struct comm alone = comm_alone(world);
    return (struct mesh){.shape = {1, 1, world->size},
                         .place.dp = world->rank,
                         .world = *world,
                         .tensor = alone,
                         .pipe = alone,
                         .data = *world,
                         .ends = alone};
}

/* STATUS_USAGE unless so many ranks make this mesh. */
static struct status mesh_check(struct mesh_shape s, int world)
{
    if (s.tp > 0 && s.pp > 0 && s.dp > 0 && size_of(s) == world) {
        return status_ok();
    }
    return status_error(
        STATUS_USAGE,
        "tensor-parallel size %d x pipeline-parallel size %d x data-parallel size %d is a mesh of "
        "%lld ranks, but %d %s started: change --tensor-model-parallel-size or "
        "--pipeline-model-parallel-size, or start another number of ranks",
        s.tp, s.pp, s.dp, (long long)size_of(s), world, world == 1 ? "was" : "were");
}

struct mesh_place mesh_place_of(struct mesh_shape s, int rank)
{
    return (struct mesh_place){.tp = rank % s.tp, .dp = rank / s.tp % s.dp, .pp = rank / (s.tp * s.dp)};
}

int mesh_rank(struct mesh_shape s, struct mesh_place p)
{
    return (p.pp * s.dp + p.dp) * s.tp + p.tp;
}

/* The rank whose place differs from this one's in one coordinate. */
static int with_tp(const struct mesh *m, int tp)
{
    return mesh_rank(m->shape, (struct mesh_place){tp, m->place.pp, m->place.dp});
}

static int with_pp(const struct mesh *m, int pp)
{
    return mesh_rank(m->shape, (struct mesh_place){m->place.tp, pp, m->place.dp});
}

static int with_dp(const struct mesh *m, int dp)
{
    return mesh_rank(m->shape, (struct mesh_place){m->place.tp, m->place.pp, dp});
}

static struct status split_ends(struct mesh *m)
{
    int pp = m->shape.pp, last = pp - 1, stage = m->pipe.rank;
    bool is_end = pp > 1 && (stage == 0 || stage == last);
    return is_end ? comm_split(&m->pipe, &m->ends, 0, last, 2) : comm_split(&m->pipe, &m->ends, stage, 1, 1);
}

static struct status split(struct mesh *m)
{
    struct mesh_shape s = m->shape;
    TRY(comm_split(&m->world, &m->tensor, with_tp(m, 0), 1, s.tp));
    TRY(comm_split(&m->world, &m->pipe, with_pp(m, 0), s.tp * s.dp, s.pp));
    TRY(comm_split(&m->world, &m->data, with_dp(m, 0), s.tp, s.dp));
    return split_ends(m);
}

/* The agreement at the end makes an error of a split known to all ranks of the world. */
struct status mesh_open(struct mesh *m, const struct comm *world, struct mesh_shape shape)
{
    *m = (struct mesh){.shape = shape, .world = *world};
    TRY(mesh_check(shape, world->size));
    if (!mesh_cuts_model(shape)) {
        *m = mesh_of_replicas(world);
        return status_ok();
    }
    m->place = mesh_place_of(shape, world->rank);
    struct status s = split(m);
    s = failed(s) ? s : comm_agree(world, s);
    if (failed(s)) {
        mesh_close(m);
    }
    return s;
}

void mesh_close(struct mesh *m)
{
    comm_part_close(&m->ends);
    if (mesh_cuts_model(m->shape)) { /* otherwise `data` is the world */
        comm_part_close(&m->data);
    }
    comm_part_close(&m->pipe);
    comm_part_close(&m->tensor);
    *m = (struct mesh){0};
}

struct mesh_sent mesh_sent(const struct mesh *m)
{
    int64_t pipe = comm_sent(&m->pipe), ends = comm_sent(&m->ends);
    return (struct mesh_sent){.slices = comm_sent(&m->tensor),
                              .stages = pipe < 0 || ends < 0 ? -1 : pipe + ends,
                              .replicas = comm_sent(&m->data)};
}

/* ---- the table ---- */

void mesh_print(FILE *f, struct mesh_shape s, const char *const *hosts)
{
    fprintf(f, "%6s %6s %6s %6s%s\n", "rank", "stage", "data", "tensor", hosts == NULL ? "" : "  host");
    for (int r = 0; r < size_of(s); r++) {
        struct mesh_place p = mesh_place_of(s, r);
        fprintf(f, "%6d %6d %6d %6d%s%s\n", r, p.pp, p.dp, p.tp, hosts == NULL ? "" : "  ",
                hosts == NULL ? "" : hosts[r]);
    }
}

struct status mesh_print_hosts(FILE *f, const struct mesh *m, const struct comm *control)
{
    size_t n = (size_t)control->size;
    struct host_text *all = calloc(n, sizeof *all);
    const char **hosts = calloc(n, sizeof *hosts);
    bool lacks = all == NULL || hosts == NULL;
    struct status s = comm_agree(
        control, lacks ? status_error(STATUS_MEMORY, "out of memory for the hosts of %d ranks", control->size)
                       : status_ok());
    if (!failed(s) && !lacks) {
        all[control->rank] = host_name();
        s = comm_share_rows(control, all, sizeof *all);
        for (size_t r = 0; r < n; r++) {
            hosts[r] = all[r].text;
        }
        if (!failed(s) && control->rank == 0 && f != NULL) {
            mesh_print(f, m->shape, hosts);
        }
    }
    free((void *)hosts);
    free(all);
    return s;
}
