/* Meshes of 1 to 8 ranks: each group has the ranks that brute force finds, in order, and sums over it are
 * sums of these; what is no mesh is refused with its numbers; the table names each rank once. */
#include "dist/mesh.h"

#include "ranks.h"

static const double DEADLINE_S = 30;

/* The ranks with this one's coordinates but one, found among all by their places. */
struct found {
    int n, ranks[RANKS_MOST];
};

static bool is_same_but(struct mesh_place a, struct mesh_place b, char direction)
{
    return (direction == 't' || a.tp == b.tp) && (direction == 'p' || a.pp == b.pp) &&
           (direction == 'd' || a.dp == b.dp);
}

/* Not by mesh_place_of: places as they are told, in three loops. */
static struct mesh_place told_place(struct mesh_shape s, int rank)
{
    int r = 0;
    for (int pp = 0; pp < s.pp; pp++) {
        for (int dp = 0; dp < s.dp; dp++) {
            for (int tp = 0; tp < s.tp; tp++, r++) {
                if (r == rank) {
                    return (struct mesh_place){tp, pp, dp};
                }
            }
        }
    }
    EXPECT(false, "rank %d is not in the mesh", rank);
    return (struct mesh_place){0};
}

static struct found find(struct mesh_shape s, int rank, char direction)
{
    struct found f = {0};
    struct mesh_place mine = told_place(s, rank);
    for (int r = 0; r < s.tp * s.pp * s.dp; r++) {
        if (is_same_but(mine, told_place(s, r), direction)) {
            f.ranks[f.n++] = r;
        }
    }
    return f;
}

static struct found find_ends(struct mesh_shape s, int rank)
{
    struct found all = find(s, rank, 'p'), ends = {1, {rank}};
    if (s.pp > 1 && (rank == all.ranks[0] || rank == all.ranks[all.n - 1])) {
        ends = (struct found){2, {all.ranks[0], all.ranks[all.n - 1]}};
    }
    return ends;
}

/* Its ranks by number, and a sum of powers of two, which tells who was in it. */
static void expect_group(const struct comm *c, const struct comm *world, const struct found *f,
                         const char *what)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    double sum = ldexp(1, world->rank), wanted = 0;
    EXPECT(c->size == f->n, "%s of rank %d: %d ranks, not %d", what, world->rank, c->size, f->n);
    for (int i = 0; i < f->n; i++) {
        EXPECT(comm_number(&c->numbers, i) == f->ranks[i], "%s of rank %d: rank %d at place %d, not %d", what,
               world->rank, comm_number(&c->numbers, i), i, f->ranks[i]);
        wanted += ldexp(1, f->ranks[i]);
    }
    EXPECT(f->ranks[c->rank] == world->rank, "%s: rank %d is at another's place", what, world->rank);
    comm_all_reduce_sum(c, &x, tensor_1d(&sum, DTYPE_F64, 1));
    EXPECT_OK(x.status);
    EXPECT(sum == wanted, "%s of rank %d: the sum is %g, not %g", what, world->rank, sum, wanted);
}

static void mesh_body(const struct comm *world, void *context)
{
    const struct mesh_shape *s = context;
    struct mesh m;
    EXPECT_OK(mesh_open(&m, world, *s));
    struct mesh_place told = told_place(*s, world->rank);
    EXPECT(m.place.tp == told.tp && m.place.pp == told.pp && m.place.dp == told.dp, "rank %d is at %d %d %d",
           world->rank, m.place.tp, m.place.pp, m.place.dp);
    EXPECT(mesh_rank(*s, m.place) == world->rank, "rank %d has the place of %d", world->rank,
           mesh_rank(*s, m.place));
    for (int round = 0; round < 3; round++) {
        struct found t = find(*s, world->rank, 't'), p = find(*s, world->rank, 'p'),
                     d = find(*s, world->rank, 'd'), e = find_ends(*s, world->rank);
        expect_group(&m.tensor, world, &t, "the tensor group");
        expect_group(&m.pipe, world, &p, "the pipeline");
        expect_group(&m.data, world, &d, "the data group");
        expect_group(&m.ends, world, &e, "the ends");
    }
    EXPECT_OK(mesh_print_hosts(NULL, &m, world));
    mesh_close(&m);
    mesh_close(&m);
    EXPECT_OK(comm_agree(world, status_ok()));
}

static void every_mesh_of(int world)
{
    for (int tp = 1; tp <= world; tp++) {
        for (int pp = 1; pp <= world; pp++) {
            struct mesh_shape s = {tp, pp, world / (tp * pp)};
            if (tp * pp * s.dp == world) {
                run_ranks(world, DEADLINE_S, mesh_body, &s);
            }
        }
    }
}

/* A rank fails in its tensor group; all others hear of it, whatever they wait for. */
static void failing_body(const struct comm *world, void *context)
{
    struct mesh m;
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    float v = 1;
    tensor t = tensor_1d(&v, DTYPE_F32, 1);
    (void)context;
    struct status s = mesh_open(&m, world, (struct mesh_shape){2, 2, 2});
    if (failed(s)) { /* the failing rank was faster */
        EXPECT_ERROR(s, STATUS_DATA, "rank 5 of 8: embed in no layer on cpu: token id");
        return;
    }
    if (world->rank == 5) {
        exec_fail(&x, STATUS_DATA, "embed", "token id 99 is outside");
    }
    comm_all_reduce_sum(&m.tensor, &x, t);
    if (m.place.pp == 0) {
        comm_receive(&m.pipe, &x, t, 1);
    } else {
        comm_send(&m.pipe, &x, t, 0);
    }
    comm_all_reduce_sum(&m.data, &x, t);
    comm_all_reduce_sum(&m.ends, &x, t);
    EXPECT_ERROR(comm_agree(world, x.status), STATUS_DATA, "rank 5 of 8: embed in no layer on cpu: token id");
    mesh_close(&m);
}

static void refused_body(const struct comm *world, void *context)
{
    struct mesh m;
    (void)context;
    EXPECT_ERROR(
        mesh_open(&m, world, (struct mesh_shape){.tp = 2, .pp = 2, .dp = 1}), STATUS_USAGE,
        "tensor-parallel size 2 x pipeline-parallel size 2 x data-parallel size 1 is a mesh of 4 ranks, "
        "but 3 were started: change --tensor-model-parallel-size");
    EXPECT_ERROR(mesh_open(&m, world, (struct mesh_shape){.tp = 3, .pp = 1, .dp = 0}), STATUS_USAGE,
                 "data-parallel size 0");
    mesh_close(&m);
}

static void the_table_names_each_rank(void)
{
    static const char *const hosts[] = {"n1", "n1", "n2", "n2"};
    char text[512] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    EXPECT(f != NULL, "no file");
    mesh_print(f, (struct mesh_shape){.tp = 2, .pp = 2, .dp = 1}, hosts);
    fclose(f);
    EXPECT(strcmp(text, "  rank  stage   data tensor  host\n"
                        "     0      0      0      0  n1\n"
                        "     1      0      0      1  n1\n"
                        "     2      1      0      0  n2\n"
                        "     3      1      0      1  n2\n") == 0,
           "%s", text);
}

int main(void)
{
    for (int world = 1; world <= RANKS_MOST; world++) {
        every_mesh_of(world);
    }
    run_ranks(8, DEADLINE_S, failing_body, NULL);
    run_ranks(3, DEADLINE_S, refused_body, NULL);
    the_table_names_each_rank();
    return 0;
}
