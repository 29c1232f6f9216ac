/* The ranks of a part of the world as peers of an exec: sums, maxima, gatherings and sums in parts are those
 * of brute force, in fp32 to the bit of the tree and in bf16 rounded once; what they count is what rings
 * send; an emulated rank's calls return at once. */
#include "dist/comm_emulated.h"
#include "dist/comm_peers.h"
#include "ops/ops.h"

#include "ranks.h"

enum { ROWS = 24, COLUMNS = 5 };

static const double DEADLINE_S = 30;

/* Of a peer, at a place: integers, whose sums are exact. */
static float value_of(int peer, int64_t i)
{
    return (float)((peer + 1) * (i % 7 + 1));
}

static void fill(tensor t, int rank)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        tensor_set(t, i, value_of(rank, i));
    }
}

/* The largest is peer 0's. */
static void fill_below_zero(tensor t, int rank)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        tensor_set(t, i, -1 - (double)i - rank);
    }
}

static double sum_of(int size, int64_t i)
{
    double sum = 0;
    for (int r = 0; r < size; r++) {
        sum += value_of(r, i);
    }
    return sum;
}

static void calls_of(struct exec *x, enum dtype dtype)
{
    int rank = peers_rank(x), size = peers_size(x);
    float memory[ROWS * COLUMNS];
    tensor t = tensor_2d(memory, dtype, ROWS, COLUMNS);
    int64_t mine = ROWS / size * COLUMNS;
    double sent = x->totals.peer_bytes, bytes = (double)tensor_bytes(t);
    fill(t, rank);
    peers_sum(x, t);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        EXPECT(tensor_get(t, i) == sum_of(size, i), "the sum of element %lld", (long long)i);
    }
    fill(t, rank);
    peers_scatter(x, t);
    for (int64_t i = rank * mine; i < (rank + 1) * mine; i++) {
        EXPECT(tensor_get(t, i) == sum_of(size, i), "the sum in parts of element %lld", (long long)i);
    }
    if (dtype == DTYPE_F32) {
        tensor some = tensor_slice(t, 0, 1);
        fill_below_zero(some, rank);
        peers_max(x, some);
        for (int64_t i = 0; i < tensor_count(some); i++) {
            EXPECT(tensor_get(some, i) == -1 - (double)i, "the maximum of element %lld", (long long)i);
        }
        sent += 2 * (double)tensor_bytes(some) * (size - 1) / size;
    }
    fill(t, rank);
    peers_gather(x, t);
    EXPECT_OK(x->status);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        EXPECT(tensor_get(t, i) == value_of((int)(i / mine), i), "element %lld is of another", (long long)i);
    }
    EXPECT_NEAR(x->totals.peer_bytes - sent, 4 * bytes * (size - 1) / size, 1e-6);
}

/* Partial products that bf16 does not hold: a peer's are rounded, added in fp32, and the sum is rounded. */
static void rounded_once(struct exec *x)
{
    uint16_t memory[1];
    tensor t = tensor_1d(memory, DTYPE_BF16, 1);
    float mine = 1 + (float)peers_rank(x) / 512, sum = 0;
    for (int r = 0; r < peers_size(x); r++) {
        tensor_set(t, 0, 1 + (float)r / 512);
        sum += (float)tensor_get(t, 0);
    }
    tensor_set(t, 0, sum);
    double wanted = tensor_get(t, 0);
    tensor_set(t, 0, mine);
    peers_sum(x, t);
    EXPECT(tensor_get(t, 0) == wanted, "%.9g, not %.9g", tensor_get(t, 0), wanted);
}

static void peers_body(const struct comm *world, void *context)
{
    int size = *(const int *)context;
    struct comm part;
    struct comm_peers p;
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    EXPECT_OK(comm_split(world, &part, world->rank % (world->size / size), world->size / size, size));
    EXPECT_OK(comm_peers_init(&p, &part));
    x.peers = &p.peers;
    calls_of(&x, DTYPE_F32);
    calls_of(&x, DTYPE_BF16);
    rounded_once(&x);
    comm_peers_fini(&p);
    comm_part_close(&part);
}

/* A peer's failed op is heard by all in their next call. */
static void failing_body(const struct comm *world, void *context)
{
    struct comm_peers p;
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    float v[4] = {0};
    (void)context;
    EXPECT_OK(comm_peers_init(&p, world));
    x.peers = &p.peers;
    if (world->rank == 1) {
        exec_fail(&x, STATUS_DATA, "embed", "token id 99 is outside");
    }
    peers_gather(&x, tensor_1d(v, DTYPE_F32, 4));
    EXPECT_ERROR(x.status, STATUS_DATA, "rank 1 of 4: embed in no layer on cpu: token id 99");
    comm_peers_fini(&p);
}

static void an_emulated_rank_calls_nobody(void)
{
    struct comm_emulated e = {.rank = 5, .size = 8};
    struct comm control = comm_emulated_rank(&e), tensors = comm_emulated_tensors(&control), part;
    struct comm_peers p;
    struct exec x = {.device = &device_cpu, .ops = ops_cpu(), .layer_index = -1};
    float v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    tensor t = tensor_1d(v, DTYPE_F32, 8);
    EXPECT_OK(comm_split(&tensors, &part, 4, 1, 4));
    EXPECT(part.rank == 1 && part.size == 4 && comm_number(&part.numbers, 1) == 5, "rank %d of %d", part.rank,
           part.size);
    EXPECT_OK(comm_peers_init(&p, &part));
    x.peers = &p.peers;
    peers_sum(&x, t);
    peers_scatter(&x, t);
    EXPECT(v[0] == 1 && v[7] == 8, "%g %g", (double)v[0], (double)v[7]);
    peers_gather(&x, t);
    EXPECT_OK(x.status);
    for (int i = 0; i < 8; i++) { /* the rows of ranks that are not there */
        EXPECT(v[i] == (i == 2 || i == 3 ? (float)(i + 1) : 0), "element %d is %g", i, (double)v[i]);
    }
    EXPECT(e.tensors.n_calls == 3 && e.tensors.reduced_bytes == 2 * sizeof v &&
               e.tensors.gathered_bytes == sizeof v && x.totals.peer_bytes == 3 * sizeof v,
           "%lld calls, %g and %g bytes, %g sent", (long long)e.tensors.n_calls, e.tensors.reduced_bytes,
           e.tensors.gathered_bytes, x.totals.peer_bytes);
    comm_peers_fini(&p);
    comm_part_close(&part);
}

int main(void)
{
    static const int sizes[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        run_ranks(8, DEADLINE_S, peers_body, (void *)&sizes[i]);
    }
    run_ranks(4, DEADLINE_S, failing_body, NULL);
    an_emulated_rank_calls_nobody();
    return 0;
}
