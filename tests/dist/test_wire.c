/* Communicators of processes over a wire that is a queue (tests/fixtures/fake_wire.h): messages longer than
 * a piece, sums of every kind of nodes, memory that leaves no name behind; and the notes of ranks that fail
 * or leave, which have left when the call returns.  test_mpi.sh has many more cases over MPI. */
#define _GNU_SOURCE
#include "fake_wire.h"

#include "dist/wire_group.h"
#include "dist/wire_watch.h"

#include <limits.h>

enum { LONG = (2 * WIRE_GROUP_PIECE_BYTES + 20) / 4 }; /* elements of fp32: two pieces and a short one */

/* ---- a communicator ---- */

/* Memory that ranks share is mapped, and its file has no name any more. */
static void expect_no_name(bool shares)
{
    char line[512];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    EXPECT(maps != NULL, "/proc/self/maps");
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, "/dev/shm/kiln-") != NULL) {
            EXPECT(strstr(line, "(deleted)") != NULL, "a name is left: %s", line);
            n++;
        }
    }
    fclose(maps);
    EXPECT(n == shares, "%d windows", n);
}

static float value_of(int64_t i, int rank)
{
    return (float)(i % 4093 + 5 * rank);
}

static void fill(float *v, int rank)
{
    for (int64_t i = 0; i < LONG; i++) {
        v[i] = value_of(i, rank);
    }
}

static void expect_rank(const float *v, int rank)
{
    for (int64_t i = 0; i < LONG; i++) {
        EXPECT(v[i] == value_of(i, rank), "element %lld: %g", (long long)i, (double)v[i]);
    }
}

/* The sum of value_of over ranks first, first + stride, ... n of them. */
static float sum_of(int64_t i, int first, int stride, int n)
{
    return (float)n * (value_of(i, first) + value_of(i, first + stride * (n - 1))) / 2;
}

static void expect_sum(const float *v, int64_t first, int64_t end, const struct comm_numbers *n, int size)
{
    for (int64_t i = first; i < end; i++) {
        float wanted = sum_of(i, n->first, n->stride, size);
        EXPECT(v[i] == wanted, "a sum of %d in element %lld: %g, not %g", size, (long long)i, (double)v[i],
               (double)wanted);
    }
}

/* A sum, the same in parts, and its gathering. */
static void sum(const struct comm *c, tensor t)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    float *v = t.data;
    int64_t bounds[5] = {0};
    for (int r = 1; r <= c->size; r++) {
        bounds[r] = LONG * r / c->size - r % 2;
    }
    bounds[c->size] = LONG;
    fill(v, comm_number(&c->numbers, c->rank));
    comm_all_reduce_sum(c, &x, t);
    EXPECT_OK(x.status);
    expect_sum(v, 0, LONG, &c->numbers, c->size);
    fill(v, comm_number(&c->numbers, c->rank));
    comm_queue_reduce_scatter_sum(c, &x, t, bounds);
    comm_join(c, &x);
    EXPECT_OK(x.status);
    expect_sum(v, bounds[c->rank], bounds[c->rank + 1], &c->numbers, c->size);
    comm_all_gather(c, &x, t, bounds);
    EXPECT_OK(x.status);
    expect_sum(v, 0, LONG, &c->numbers, c->size);
}

/* Every second rank; of three, the odd one alone. */
static void sum_of_part(const struct comm *c, tensor t)
{
    struct comm part;
    int first = c->rank % 2;
    EXPECT_OK(comm_split(c, &part, first, 2, (c->size - first + 1) / 2));
    EXPECT(part.rank == c->rank / 2, "rank %d is rank %d of its part", c->rank, part.rank);
    sum(&part, t);
    comm_part_close(&part);
}

/* From rank 0 to the last, which has nothing in its memory, and on to all. */
static void send(const struct comm *c, tensor t)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    int last = c->size - 1;
    fill(t.data, c->rank == 0 ? 3 : 100);
    if (c->rank == 0) {
        comm_send(c, &x, t, last);
        fill(t.data, 100); /* the message is a copy */
    } else if (c->rank == last) {
        comm_receive(c, &x, t, 0);
        expect_rank(t.data, 3);
    }
    comm_broadcast(c, &x, t, last);
    EXPECT_OK(x.status);
    expect_rank(t.data, 3);
}

struct world {
    int size, most_sharing;
    bool first_shares, last_shares; /* whether the first and the last rank share memory with another */
};

static void world_body(const struct comm *c, void *context)
{
    const struct world *w = context;
    tensor t = tensor_1d(malloc(LONG * sizeof(float)), DTYPE_F32, LONG);
    EXPECT(t.data != NULL, "no memory");
    expect_no_name(c->rank == c->size - 1 ? w->last_shares : w->first_shares);
    send(c, t);
    sum(c, t);
    sum_of_part(c, t);
    free(t.data);
}

static void test_worlds(void)
{
    static struct world worlds[] = {
        {2, 0, false, false}, /* by messages */
        {3, 2, true, false},  /* a node of two, and one of one */
        {4, 2, true, true},   /* two nodes, whose sums are parts of a tree */
        {4, INT_MAX, true, true},
    };
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        const struct comm_wire_options o = {.deadline_s = 60, .most_sharing = worlds[i].most_sharing};
        fake_wire_run(worlds[i].size, &o, world_body, &worlds[i]);
    }
}

/* ---- notes ---- */

enum { RANKS = 3 };

struct watched {
    struct fake_queue *queue;
    struct fake_rank ranks[RANKS];
    struct wire_watch watches[RANKS];
};

static struct watched *watch_all(void)
{
    struct watched *w = calloc(1, sizeof *w);
    EXPECT(w != NULL, "no memory");
    w->queue = fake_queue_create();
    for (int r = 0; r < RANKS; r++) {
        struct wire wire = fake_wire_open(&w->ranks[r], w->queue, r, RANKS);
        EXPECT_OK(wire_watch_init(&w->watches[r], &wire));
    }
    return w;
}

static void close_all(struct watched *w, bool in_peace)
{
    for (int r = 0; r < RANKS; r++) {
        wire_watch_fini(&w->watches[r]);
        EXPECT(w->ranks[r].n_closed == 1 && w->ranks[r].n_in_peace == in_peace, "rank %d closes %d, %d", r,
               w->ranks[r].n_closed, w->ranks[r].n_in_peace);
    }
    fake_queue_destroy(w->queue);
    free(w);
}

/* Whoever fails, all others hear it, and a second error changes nothing. */
static void test_failure(int failing)
{
    struct watched *w = watch_all();
    (void)wire_watch_fail(&w->watches[failing], status_error(STATUS_IO, "the disk is full"));
    (void)wire_watch_fail(&w->watches[failing], status_error(STATUS_DATA, "a second error"));
    for (int r = 0; r < RANKS; r++) {
        wire_watch_hear(&w->watches[r]);
        wire_watch_store(&w->watches[r], status_error(STATUS_DATA, "an error of its own"));
        EXPECT_ERROR(w->watches[r].failure, STATUS_IO, "the disk is full");
    }
    close_all(w, false);
}

/* Who leaves in peace is no error to the others, who know it a moment later. */
static void test_leaving(int leaving)
{
    struct watched *w = watch_all();
    wire_watch_leave(&w->watches[leaving], status_ok());
    for (int r = 0; r < RANKS; r++) {
        struct wire_watch *other = &w->watches[r];
        wire_watch_hear(other);
        EXPECT_OK(other->failure);
        for (int q = 0; q < RANKS; q++) {
            int64_t left = other->left_ns[q];
            EXPECT((left > 0) == (q == leaving && r != leaving), "rank %d takes rank %d for %s", r, q,
                   left > 0 ? "gone" : "there");
            EXPECT(!wire_watch_has_left(other, q, left + 100000000) &&
                       wire_watch_has_left(other, q, left + 300000000) == (left > 0),
                   "another time of rank %d", q);
        }
    }
    close_all(w, true);
}

int main(void)
{
    for (int r = 0; r < RANKS; r++) {
        test_failure(r);
        test_leaving(r);
    }
    test_worlds();
    return 0;
}
