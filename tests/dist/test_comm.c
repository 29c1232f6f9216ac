/* Communicators of threads, and of processes if a launcher starts this several times: sums of a fixed shape,
 * to the bit, whoever comes first; maxima, gathers, broadcasts; messages in order; and that one rank's error,
 * or its absence, ends all of them with its name, and soon. */
#include "comm_cases.h"

#include "core/clock.h"

enum { ROUNDS = 20 };

static const double BUSY_S = 3.5; /* longer than the silence that test_mpi.sh sets */

static void sum_body(const struct comm *c, void *context)
{
    (void)context;
    sum_dtype(c, DTYPE_F32, ROUNDS);
    sum_dtype(c, DTYPE_F64, ROUNDS);
    sum_dtype(c, DTYPE_BF16, ROUNDS);
}

/* -0 of all ranks stays -0, and of one rank with +0 of another it is +0. */
static void zero_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    float v[2] = {-0.0f, c->rank == 1 ? 0.0f : -0.0f};
    comm_all_reduce_sum(c, &x, tensor_1d(v, DTYPE_F32, 2));
    EXPECT_OK(x.status);
    EXPECT(signbit(v[0]) && !signbit(v[1]), "%g %g", (double)v[0], (double)v[1]);
}

static void broadcast_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    for (int root = 0; root < c->size; root++) {
        int32_t v[N];
        for (int i = 0; i < N; i++) {
            v[i] = i * (1 + c->rank);
        }
        dawdle(c->rank, root);
        comm_broadcast(c, &x, tensor_1d(v, DTYPE_I32, N), root);
        EXPECT_OK(x.status);
        EXPECT(v[N - 1] == (N - 1) * (1 + root), "%d from %d", v[N - 1], root);
    }
}

/* Rows of a matrix, rank r the first r + 1 that nobody before has; and of the last rank none. */
static void gather_body(const struct comm *c, void *context)
{
    (void)context;
    enum { COLS = 3, MOST = 64 };
    struct exec x = host_exec();
    int64_t bounds[RANKS_MOST + 1] = {0};
    double v[MOST * COLS];
    for (int r = 0; r < c->size; r++) {
        bounds[r + 1] = bounds[r] + (r < c->size - 1 ? r + 1 : 0);
    }
    int64_t n = bounds[c->size] * COLS;
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < n; i++) {
            bool mine = i >= bounds[c->rank] * COLS && i < bounds[c->rank + 1] * COLS;
            v[i] = mine ? (double)(i + 1000 * round) : -1;
        }
        dawdle(c->rank, round);
        comm_all_gather(c, &x, tensor_2d(v, DTYPE_F64, bounds[c->size], COLS), bounds);
        EXPECT_OK(x.status);
        for (int64_t i = 0; i < n; i++) {
            EXPECT(v[i] == (double)(i + 1000 * round), "element %lld of rank %d: %g", (long long)i, c->rank,
                   v[i]);
        }
    }
}

/* Parts of unequal sizes, that of rank 1 empty where there is a rank 2. */
static void cut_unequally(int64_t *bounds, int size, int64_t n)
{
    for (int64_t r = 0; r <= size; r++) {
        int64_t k = size > 2 && r == 2 ? 1 : r;
        bounds[r] = n * k * (k + 1) / ((int64_t)size * (size + 1));
    }
}

static void scatter_dtype(const struct comm *c, enum dtype dtype)
{
    struct exec x = host_exec();
    int64_t bounds[RANKS_MOST + 1];
    tensor t = tensor_1d(malloc(N * sizeof(double)), dtype, N);
    cut_unequally(bounds, c->size, N);
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < N; i++) {
            tensor_set(t, i, value_of(c->rank, round, i));
        }
        dawdle(c->rank, round);
        comm_queue_reduce_scatter_sum(c, &x, t, bounds);
        comm_join(c, &x);
        EXPECT_OK(x.status);
        for (int64_t i = bounds[c->rank]; i < bounds[c->rank + 1]; i += 3) {
            double wanted = wanted_sum(dtype, c, round, i);
            EXPECT(tensor_get(t, i) == wanted, "element %lld of rank %d: %g, not %g", (long long)i, c->rank,
                   tensor_get(t, i), wanted);
        }
    }
    free(t.data);
}

/* The bits of whole sums. */
static void scatter_body(const struct comm *c, void *context)
{
    (void)context;
    scatter_dtype(c, DTYPE_F32);
    scatter_dtype(c, DTYPE_F64);
    scatter_dtype(c, DTYPE_BF16);
}

/* Of i % 1000 + r over all ranks r. */
static float sum_of_large(const struct comm *c, int64_t i)
{
    int64_t of_ranks = (int64_t)c->size * (c->size - 1) / 2;
    return (float)(c->size * (i % 1000) + of_ranks);
}

/* A part that takes several pieces, another that is one element, and no elements at all. */
static void large_parts_body(const struct comm *c, void *context)
{
    (void)context;
    enum { LARGE = (9 << 20) / 4 + 5 };
    struct exec x = host_exec();
    int64_t bounds[RANKS_MOST + 1] = {0}, none[RANKS_MOST + 1] = {0};
    float *v = malloc(LARGE * sizeof *v);
    EXPECT(v != NULL, "out of memory");
    for (int r = 1; r <= c->size; r++) {
        bounds[r] = r < c->size ? r : LARGE;
    }
    for (int64_t i = 0; i < LARGE; i++) {
        v[i] = (float)(i % 1000 + c->rank);
    }
    comm_queue_reduce_scatter_sum(c, &x, tensor_1d(v, DTYPE_F32, LARGE), bounds);
    comm_queue_reduce_scatter_sum(c, &x, tensor_1d(v, DTYPE_F32, 0), none);
    comm_join(c, &x);
    EXPECT_OK(x.status);
    for (int64_t i = bounds[c->rank]; i < bounds[c->rank + 1]; i++) {
        float wanted = sum_of_large(c, i);
        EXPECT(v[i] == wanted, "element %lld: %g, not %g", (long long)i, (double)v[i], (double)wanted);
    }
    free(v);
}

/* Ranks that cut another way. */
static void other_sums_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    float v[6] = {0};
    int64_t bounds[] = {0, c->rank == 1 ? 3 : 2, 4, 6};
    comm_queue_reduce_scatter_sum(c, &x, tensor_1d(v, DTYPE_F32, 6), bounds);
    EXPECT_ERROR(x.status, STATUS_INTERNAL, "rank 1 sums parts that differ from rank 0's");
}

static void other_bounds_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    float v[6] = {0};
    int64_t bounds[] = {0, c->rank == 1 ? 3 : 2, 4, 6};
    comm_all_gather(c, &x, tensor_1d(v, DTYPE_F32, 6), bounds);
    EXPECT_ERROR(x.status, STATUS_INTERNAL, "rank 1 gathers parts that differ from rank 0's");
}

/* The largest of each element; a NaN is larger than all. */
static void max_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    float v[N];
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < N; i++) {
            v[i] = fabsf((float)value_of(c->rank, round, i));
        }
        v[round] = c->rank == round % c->size ? NAN : INFINITY;
        dawdle(c->rank, round);
        comm_all_reduce_max(c, &x, tensor_1d(v, DTYPE_F32, N));
        EXPECT_OK(x.status);
        for (int64_t i = 0; i < N; i++) {
            float wanted = 0;
            for (int r = 0; r < c->size; r++) {
                wanted = fmaxf(wanted, fabsf((float)value_of(r, round, i)));
            }
            EXPECT(i == round ? isnan(v[i]) : v[i] == wanted, "element %lld of rank %d: %g, not %g",
                   (long long)i, c->rank, (double)v[i], (double)wanted);
        }
    }
}

/* Where all ranks' numbers are below zero, too. */
static void max_signed_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    float v[N];
    for (int64_t i = 0; i < N; i++) {
        v[i] = (float)value_of(c->rank, 0, i) - (float)(i % 3);
    }
    v[0] = c->rank == 0 ? -2 : -INFINITY;
    comm_all_reduce_max_signed(c, &x, tensor_1d(v, DTYPE_F32, N));
    EXPECT_OK(x.status);
    EXPECT(v[0] == -2, "%g, not the only number", (double)v[0]);
    for (int64_t i = 1; i < N; i++) {
        float wanted = -INFINITY;
        for (int r = 0; r < c->size; r++) {
            wanted = fmaxf(wanted, (float)value_of(r, 0, i) - (float)(i % 3));
        }
        EXPECT(v[i] == wanted, "element %lld of rank %d: %g, not %g", (long long)i, c->rank, (double)v[i],
               (double)wanted);
    }
}

static void max_dtype_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    float v[2] = {0};
    comm_all_reduce_max(c, &x, tensor_1d(v, DTYPE_BF16, 2));
    EXPECT_ERROR(x.status, STATUS_USAGE, "ranks can take the maximum of fp32, not of bf16");
}

/* Several pieces, the last of them short, and nothing at all. */
static void large_body(const struct comm *c, void *context)
{
    (void)context;
    enum { LARGE = (9 << 20) / 4 + 5 };
    struct exec x = host_exec();
    float *v = malloc(LARGE * sizeof *v);
    EXPECT(v != NULL, "out of memory");
    for (int64_t i = 0; i < LARGE; i++) {
        v[i] = (float)(i % 1000 + c->rank);
    }
    comm_all_reduce_sum(c, &x, tensor_1d(v, DTYPE_F32, LARGE));
    EXPECT_OK(x.status);
    for (int64_t i = 0; i < LARGE; i++) {
        float wanted = sum_of_large(c, i);
        EXPECT(v[i] == wanted, "element %lld: %g, not %g", (long long)i, (double)v[i], (double)wanted);
        v[i] = (float)(i + c->rank);
    }
    comm_broadcast(c, &x, tensor_1d(v, DTYPE_F32, LARGE), c->size - 1);
    EXPECT_OK(x.status);
    for (int64_t i = 0; i < LARGE; i++) {
        EXPECT(v[i] == (float)(i + c->size - 1), "element %lld: %g", (long long)i, (double)v[i]);
    }
    if (c->rank == 0) {
        comm_send(c, &x, tensor_1d(v, DTYPE_F32, LARGE), 1);
    } else if (c->rank == 1) {
        memset(v, 0, LARGE * sizeof *v);
        comm_receive(c, &x, tensor_1d(v, DTYPE_F32, LARGE), 0);
    }
    EXPECT_OK(x.status);
    EXPECT(v[LARGE - 1] == (float)(LARGE - 1 + c->size - 1), "%g", (double)v[LARGE - 1]);
    comm_all_reduce_sum(c, &x, tensor_1d(v, DTYPE_F32, 0));
    EXPECT_OK(x.status);
    free(v);
}

/* All send before anybody receives: a send does not wait, and messages keep their order. */
static void message_body(const struct comm *c, void *context)
{
    (void)context;
    struct exec x = host_exec();
    int next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
    for (int64_t k = 0; k < ROUNDS; k++) {
        int64_t mine[2] = {c->rank, k};
        comm_send(c, &x, tensor_1d(mine, DTYPE_I64, 2), next);
        mine[0] = -1;
    }
    for (int64_t k = 0; k < ROUNDS; k++) {
        int64_t got[2] = {-1, -1};
        comm_receive(c, &x, tensor_1d(got, DTYPE_I64, 2), before);
        EXPECT_OK(x.status);
        EXPECT(got[0] == before && got[1] == k, "message %lld of %lld", (long long)got[1], (long long)got[0]);
    }
}

/* Rank 0, or 1 instead of it: alone it waits until its deadline, whatever others would have found. */
static int punctual_rank(const struct failing_case *k)
{
    return k->failing == 0 ? 1 : 0;
}

/* Those that the deadline ends do not meet before. */
static bool has_short_deadline(const struct failing_case *k)
{
    return k->deadline_s < DEADLINE_S;
}

static void fail_as(const struct comm *c, struct exec *x, const struct failing_case *k)
{
    float v[8] = {0};
    switch (k->how) {
    case IN_A_SUM: /* its op failed, and it goes on with its list of calls */
        exec_fail(x, STATUS_DATA, "embed", "token id 99 is outside");
        comm_all_reduce_sum(c, x, tensor_1d(v, DTYPE_F32, 8));
        break;
    case IN_A_GATHER:
        exec_fail(x, STATUS_DATA, "embed", "token id 99 is outside");
        comm_all_gather(c, x, tensor_1d(v, DTYPE_F32, 8), (const int64_t[]){0, 2, 4, 6, 8});
        break;
    case IN_A_SUM_IN_PARTS:
        exec_fail(x, STATUS_DATA, "embed", "token id 99 is outside");
        comm_queue_reduce_scatter_sum(c, x, tensor_1d(v, DTYPE_F32, 8), (const int64_t[]){0, 2, 4, 6, 8});
        break;
    case IN_A_MESSAGE:
        exec_fail(x, STATUS_DATA, "embed", "token id 99 is outside");
        comm_send(c, x, tensor_1d(v, DTYPE_F32, 8), 0);
        break;
    case LEAVES: comm_leave(c, status_error(STATUS_IO, "the disk is full")); break;
    case HAS_LEFT:
    case LEAVES_IN_PEACE:
        comm_leave(c, status_ok());
        EXPECT(failed(comm_agree(c, status_ok())), "a call of a rank that has left");
        say(I_LEFT, c->rank);
        break;
    case IS_LATE:
        await_word(I_GAVE_UP, punctual_rank(k));
        comm_all_reduce_sum(c, x, tensor_1d(v, DTYPE_F32, 8));
        break;
    case SUMS_ANOTHER_SIZE: comm_all_reduce_sum(c, x, tensor_1d(v, DTYPE_F32, 7)); break;
    case IS_KILLED: raise(SIGKILL); break;
    case IS_STOPPED:
        if (!has_short_deadline(k)) {
            await_heartbeats(c);
        }
        raise(SIGSTOP);
        break;
    case IS_BUSY: break; /* busy_body */
    }
}

/* The one that waits for a message, while the others sum. */
static bool is_receiver(const struct comm *c, const struct failing_case *k)
{
    return c->rank == 0 && (k->how == IN_A_MESSAGE || k->how == LEAVES || k->how == LEAVES_IN_PEACE);
}

static void failing_body(const struct comm *c, void *context)
{
    const struct failing_case *k = context;
    struct exec x = host_exec();
    if (k->how == IS_KILLED) {
        signal(SIGTERM,
               SIG_IGN); /* mpirun sends it to the others, and kiln's runs do not end by it at once either */
    }
    if (!has_short_deadline(k)) { /* all are there; that it failed in the end may be heard already */
        (void)comm_agree(c, status_ok());
    }
    float v[8] = {0};
    if (c->rank == k->failing) {
        fail_as(c, &x, k);
    } else if (is_receiver(c, k)) {
        comm_receive(c, &x, tensor_1d(v, DTYPE_F32, 8), k->failing);
    } else if (k->how == IN_A_GATHER) {
        comm_all_gather(c, &x, tensor_1d(v, DTYPE_F32, 8), (const int64_t[]){0, 2, 4, 6, 8});
    } else if (k->how == IN_A_SUM_IN_PARTS) {
        comm_queue_reduce_scatter_sum(c, &x, tensor_1d(v, DTYPE_F32, 8), (const int64_t[]){0, 2, 4, 6, 8});
        comm_join(c, &x);
    } else {
        if (k->how == HAS_LEFT) {
            await_word(I_LEFT, k->failing);
        } else if (has_short_deadline(k) && c->rank != punctual_rank(k)) {
            await_word(I_GAVE_UP, punctual_rank(k));
        }
        comm_all_reduce_sum(c, &x, tensor_1d(v, DTYPE_F32, 8));
        say(I_GAVE_UP, c->rank);
    }
    if (c->rank != k->failing) {
        EXPECT(failed(x.status) && strstr(x.status.message, k->wanted) != NULL, "rank %d: '%s' lacks '%s'",
               c->rank, x.status.message, k->wanted);
        struct exec later = host_exec(); /* the error stays */
        comm_all_reduce_sum(c, &later, tensor_1d(v, DTYPE_F32, 8));
        EXPECT(failed(later.status), "a sum after an error");
    }
}

/* A rank that computes for longer than a lost one may be silent is waited for. */
static void busy_body(const struct comm *c, void *context)
{
    const struct failing_case *k = context;
    struct exec x = host_exec();
    float v = 1;
    EXPECT_OK(comm_agree(c, status_ok()));
    int64_t start = clock_ns();                                      /* time: of any length above BUSY_S */
    while (c->rank == k->failing && clock_since_s(start) < BUSY_S) { /* time: the same */
    }
    comm_all_reduce_sum(c, &x, tensor_1d(&v, DTYPE_F32, 1));
    EXPECT_OK(x.status);
    EXPECT(v == (float)c->size, "%g", (double)v);
}

/* Of several errors the one that is not only a stop; else that of the lowest rank. */
static void worst_body(const struct comm *c, void *context)
{
    (void)context;
    struct status mine = c->rank == 0   ? status_ok()
                         : c->rank == 1 ? status_error(STATUS_PREEMPTED, "stopped")
                                        : status_error(STATUS_DATA, "damaged %d", c->rank);
    EXPECT_ERROR(comm_agree(c, mine), STATUS_DATA, "rank 2 of 4: damaged 2");
}

static void one_rank_alone(void)
{
    struct comm c = comm_self();
    struct exec x = host_exec();
    float v[2] = {3, 4};
    comm_all_reduce_sum(&c, &x, tensor_1d(v, DTYPE_F32, 2));
    comm_broadcast(&c, &x, tensor_1d(v, DTYPE_F32, 2), 0);
    comm_all_reduce_max(&c, &x, tensor_1d(v, DTYPE_F32, 2));
    comm_all_gather(&c, &x, tensor_1d(v, DTYPE_F32, 2), (const int64_t[]){0, 2});
    comm_queue_reduce_scatter_sum(&c, &x, tensor_1d(v, DTYPE_F32, 2), (const int64_t[]){0, 2});
    EXPECT_OK(x.status);
    EXPECT_OK(comm_agree(&c, status_ok()));
    EXPECT(v[0] == 3 && v[1] == 4, "%g %g", (double)v[0], (double)v[1]);
    EXPECT_ERROR(comm_agree(&c, status_error(STATUS_IO, "the disk is full")), STATUS_IO, "the disk is full");
    comm_leave(&c, status_ok());
}

static void device_body(const struct comm *c, void *context)
{
    struct device device = device_cpu;
    device.is_host = false;
    device.name = "gpu";
    struct exec x = {.device = &device, .layer_index = -1};
    float v = 1;
    (void)context;
    comm_all_reduce_sum(c, &x, tensor_1d(&v, DTYPE_F32, 1));
    EXPECT_ERROR(x.status, STATUS_USAGE, "but the tensor is on gpu");
}

static const struct comm_case peaceful[] = {
    {"sums", 1, RANKS_MOST, sum_body, {0}},
    {"zeros", 3, 3, zero_body, {0}},
    {"broadcasts", 4, 4, broadcast_body, {0}},
    {"gathers", 1, 5, gather_body, {0}},
    {"maxima", 1, 5, max_body, {0}},
    {"signed_maxima", 1, 5, max_signed_body, {0}},
    {"messages", 2, 4, message_body, {0}},
    {"pieces", 2, 4, large_body, {0}},
    {"sums_in_parts", 1, RANKS_MOST, scatter_body, {0}},
    {"large_parts", 2, 4, large_parts_body, {0}},
};

static const struct comm_case ending[] = {
    {"other_bounds", 3, 3, other_bounds_body, {0}},
    {"other_sums", 3, 3, other_sums_body, {0}},
    {"max_dtype", 2, 2, max_dtype_body, {0}},
    {"worst", 4, 4, worst_body, {0}},
    {"device", 2, 2, device_body, {0}},
    {"in_a_sum", 4, 4, failing_body, {2, IN_A_SUM, "rank 2 of 4: embed in no layer on cpu: token id 99", 30}},
    {"in_a_gather",
     4,
     4,
     failing_body,
     {2, IN_A_GATHER, "rank 2 of 4: embed in no layer on cpu: token id 99", 30}},
    {"in_a_sum_in_parts",
     4,
     4,
     failing_body,
     {2, IN_A_SUM_IN_PARTS, "rank 2 of 4: embed in no layer on cpu: token id 99", 30}},
    {"in_a_message",
     4,
     4,
     failing_body,
     {2, IN_A_MESSAGE, "rank 2 of 4: embed in no layer on cpu: token id 99", 30}},
    {"leaves", 4, 4, failing_body, {1, LEAVES, "rank 1 of 4: the disk is full", 30}},
    {"leaves_in_peace", 4, 4, failing_body, {3, LEAVES_IN_PEACE, "rank 3 of 4 has left", 30}},
    {"has_left", 4, 4, failing_body, {2, HAS_LEFT, "rank 2 of 4 has left", 30}},
    {"is_late", 4, 4, failing_body, {1, IS_LATE, "s in a sum for ranks: 1, 2, 3", 0.1}},
    {"another_size",
     4,
     4,
     failing_body,
     {3, SUMS_ANOTHER_SIZE, "rank 3 is in a sum of 7 elements, but rank 0 is in a sum of 8", 30}},
    {"killed", 4, 4, failing_body, {2, IS_KILLED, "rank 2 of 4 has ended", 30}},
    {"stopped", 4, 4, failing_body, {1, IS_STOPPED, "s in a sum for ranks: 1", 1}},
    {"first_stopped", 4, 4, failing_body, {0, IS_STOPPED, "s in a sum for ranks: 0", 1}},
    /* of these the others have heard, and the deadline is far away; test_mpi.sh sets the silence */
    {"silent", 4, 4, failing_body, {2, IS_STOPPED, "has been silent for 2.0 s", 600}},
    {"first_silent", 4, 4, failing_body, {0, IS_STOPPED, "rank 0 of 4 on ", 600}},
    {"busy", 4, 4, busy_body, {1, IS_BUSY, "", 600}},
};

static const struct comm_cases cases = {peaceful, ending, sizeof peaceful / sizeof peaceful[0],
                                        sizeof ending / sizeof ending[0], FAKE_NCCL_LIBRARY};

int main(int argc, char **argv)
{
    return comm_cases_main(argc, argv, &cases, one_rank_alone);
}
