/* Parts of communicators, of threads, of processes if a launcher starts this several times, and over NCCL's
 * substitute: sums and messages of every part are those of its ranks alone, to the bit, whatever other parts
 * do; parts of parts; and one rank's error, or its absence, ends the ranks of all parts with its number in
 * the world, and soon. */
#include "comm_cases.h"

static struct comm part_of(const struct comm *c, int first, int stride, int n)
{
    struct comm part;
    EXPECT_OK(comm_split(c, &part, first, stride, n));
    EXPECT(part.size == n && part.rank == (c->rank - first) / stride, "rank %d of %d", part.rank, part.size);
    EXPECT(comm_number(&part.numbers, part.rank) == comm_number(&c->numbers, c->rank) &&
               part.numbers.world == c->numbers.world,
           "rank %d of %d in the world", comm_number(&part.numbers, part.rank), part.numbers.world);
    EXPECT(part.n_local == c->n_local && part.local_rank == c->local_rank, "another place on the node");
    return part;
}

/* Of c's ranks r, k of them are in a row, and every k-th one makes a group too. */
static struct comm row_of(const struct comm *c, int k)
{
    return part_of(c, c->rank / k * k, 1, k);
}

static struct comm column_of(const struct comm *c, int k)
{
    return part_of(c, c->rank % k, k, c->size / k);
}

/* All collectives of a part, against those of brute force over its ranks' numbers in the world. */
static void calls_of(const struct comm *c)
{
    struct exec x = host_exec();
    int64_t bounds[RANKS_MOST + 1] = {0}, mine = comm_number(&c->numbers, c->rank), rows[2 * RANKS_MOST];
    float most = (float)mine;
    for (int r = 0; r < c->size; r++) {
        bounds[r + 1] = bounds[r] + 1 + r % 2;
    }
    int64_t n = bounds[c->size];
    for (int64_t i = 0; i < n; i++) {
        rows[i] = mine;
    }
    comm_all_gather(c, &x, tensor_1d(rows, DTYPE_I64, n), bounds);
    comm_all_reduce_max(c, &x, tensor_1d(&most, DTYPE_F32, 1));
    comm_broadcast(c, &x, tensor_1d(&mine, DTYPE_I64, 1), c->size - 1);
    EXPECT_OK(x.status);
    for (int r = 0; r < c->size; r++) {
        for (int64_t i = bounds[r]; i < bounds[r + 1]; i++) {
            EXPECT(rows[i] == comm_number(&c->numbers, r), "row %lld is of %lld", (long long)i,
                   (long long)rows[i]);
        }
    }
    EXPECT(most == (float)comm_number(&c->numbers, c->size - 1), "the largest is %g", (double)most);
    EXPECT(mine == comm_number(&c->numbers, c->size - 1), "a broadcast of %lld", (long long)mine);
}

static void scatter_of(const struct comm *c)
{
    enum { EACH = 300 };
    struct exec x = host_exec();
    int64_t bounds[RANKS_MOST + 1] = {0};
    float v[EACH * RANKS_MOST];
    for (int r = 0; r < c->size; r++) {
        bounds[r + 1] = bounds[r] + EACH;
    }
    for (int64_t i = 0; i < bounds[c->size]; i++) {
        v[i] = (float)value_of(comm_number(&c->numbers, c->rank), 0, i);
    }
    comm_queue_reduce_scatter_sum(c, &x, tensor_1d(v, DTYPE_F32, bounds[c->size]), bounds);
    comm_join(c, &x);
    EXPECT_OK(x.status);
    for (int64_t i = bounds[c->rank]; i < bounds[c->rank + 1]; i++) {
        double wanted = wanted_sum(DTYPE_F32, c, 0, i);
        EXPECT((double)v[i] == wanted, "element %lld: %g, not %g", (long long)i, (double)v[i], wanted);
    }
}

/* A message round the ring of a part, and one of the whole between the same ranks before it is received. */
static void messages_of(const struct comm *c, const struct comm *whole)
{
    struct exec x = host_exec();
    int next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
    int next_in_whole = (whole->rank + 1) % whole->size,
        before_in_whole = (whole->rank + whole->size - 1) % whole->size;
    int64_t mine = whole->rank, of_part = -1, of_whole = -1, other = 1000 + whole->rank;
    if (c->size > 1) {
        comm_send(c, &x, tensor_1d(&mine, DTYPE_I64, 1), next);
    }
    comm_send(whole, &x, tensor_1d(&other, DTYPE_I64, 1), next_in_whole);
    comm_receive(whole, &x, tensor_1d(&of_whole, DTYPE_I64, 1), before_in_whole);
    if (c->size > 1) {
        comm_receive(c, &x, tensor_1d(&of_part, DTYPE_I64, 1), before);
        EXPECT(of_part == comm_number(&c->numbers, before), "a message of %lld", (long long)of_part);
    }
    EXPECT_OK(x.status);
    EXPECT(of_whole == 1000 + before_in_whole, "a message of %lld", (long long)of_whole);
}

static void all_of(const struct comm *c, const struct comm *whole)
{
    sum_dtype(c, DTYPE_F32, 3);
    sum_dtype(c, DTYPE_F64, 1);
    sum_dtype(c, DTYPE_BF16, 2);
    calls_of(c);
    scatter_of(c);
    messages_of(c, whole);
    EXPECT_OK(comm_agree(c, status_ok()));
}

/* Every grid that the ranks fill. */
static void grids_body(const struct comm *c, void *context)
{
    (void)context;
    for (int k = 1; k <= c->size; k++) {
        if (c->size % k == 0) {
            struct comm row = row_of(c, k), column = column_of(c, k);
            for (int round = 0; round < 2; round++) {
                dawdle(c->rank, round);
                all_of(&row, c);
                all_of(&column, c);
                sum_dtype(c, DTYPE_F32, 1);
            }
            comm_part_close(&row);
            comm_part_close(&column);
            comm_part_close(&column); /* which is closed */
        }
    }
}

/* Groups of different sizes, of which one is of a single rank. */
static void uneven_body(const struct comm *c, void *context)
{
    (void)context;
    bool is_alone = c->rank == c->size / 2 && c->size % 2 == 1;
    int n = c->size % 2 == 1 ? c->size / 2 : c->size;
    struct comm part = is_alone      ? part_of(c, c->rank, 1, 1)
                       : c->rank < n ? part_of(c, 0, 1, n)
                                     : part_of(c, n + 1, 1, n);
    EXPECT(!is_alone || strcmp(part.type->name, "self") == 0, "a rank alone is %s", part.type->name);
    all_of(&part, c);
    comm_part_close(&part);
}

/* Columns of rows of rows. */
static void nested_body(const struct comm *c, void *context)
{
    (void)context;
    struct comm half = column_of(c, 2);
    struct comm quarter = part_of(&half, half.rank % 2, 2, half.size / 2);
    struct comm pair = part_of(&half, half.rank / 2 * 2, 1, 2);
    EXPECT(quarter.numbers.stride == 4 && pair.numbers.stride == 2, "strides of %d and %d",
           quarter.numbers.stride, pair.numbers.stride);
    all_of(&quarter, c);
    all_of(&pair, c);
    all_of(&half, c);
    comm_part_close(&quarter);
    comm_part_close(&pair);
    comm_part_close(&half);
}

/* What a part has sent arrives, although its sender has closed it, as it says on the whole; NCCL's sends wait
 * for their receiver, who is not told. */
static void sent_and_closed_body(const struct comm *c, void *context)
{
    (void)context;
    enum { LARGE = 300000 };
    struct exec x = host_exec();
    struct comm part = part_of(c, 0, 1, c->size);
    int64_t *v = calloc(LARGE, sizeof *v);
    EXPECT(v != NULL, "out of memory");
    v[LARGE - 1] = 7;
    if (part.rank == 0) {
        comm_send(&part, &x, tensor_1d(v, DTYPE_I64, LARGE), 1);
        comm_part_close(&part);
        if (ranks_over == NULL) {
            comm_send(c, &x, tensor_1d(v, DTYPE_I64, 1), 1);
        }
    } else if (part.rank == 1) {
        if (ranks_over == NULL) {
            comm_receive(c, &x, tensor_1d(v, DTYPE_I64, 1), 0);
        }
        v[LARGE - 1] = 0;
        comm_receive(&part, &x, tensor_1d(v, DTYPE_I64, LARGE), 0);
        EXPECT(v[LARGE - 1] == 7, "%lld", (long long)v[LARGE - 1]);
    }
    EXPECT_OK(x.status);
    comm_part_close(&part);
    EXPECT_OK(comm_agree(c, status_ok()));
    free(v);
}

/* ---- errors: four ranks, rows {0, 1} and {2, 3}, columns {0, 2} and {1, 3} ---- */

/* Ranks say different things of a group. */
static void disagree_body(const struct comm *c, void *context)
{
    struct comm part;
    (void)context;
    struct status s = comm_split(c, &part, c->rank == 3 ? 3 : 0, 1, c->rank == 3 ? 1 : 4);
    EXPECT(failed(s) &&
               strstr(s.message, "splits off 4 ranks from 0 on, but rank 3 1 ranks from 3 on") != NULL,
           "'%s'", s.message);
    comm_part_close(&part);
}

static void fail_in_part(const struct comm *whole, const struct comm *row, struct exec *x,
                         const struct failing_case *k)
{
    float v[8] = {0};
    switch (k->how) {
    case IN_A_SUM:
        exec_fail(x, STATUS_DATA, "embed", "token id 99 is outside");
        comm_all_reduce_sum(row, x, tensor_1d(v, DTYPE_F32, 8));
        break;
    case IN_A_GATHER: /* of all ranks, where no other comes */
        exec_fail(x, STATUS_DATA, "embed", "token id 99 is outside");
        (void)comm_agree(whole, x->status);
        break;
    case SUMS_ANOTHER_SIZE: comm_all_reduce_sum(row, x, tensor_1d(v, DTYPE_F32, 7)); break;
    case LEAVES: comm_leave(row, status_error(STATUS_IO, "the disk is full")); break;
    case LEAVES_IN_PEACE: comm_leave(whole, status_ok()); break;
    case IS_LATE:
        await_word(I_GAVE_UP, 2);
        comm_all_reduce_sum(row, x, tensor_1d(v, DTYPE_F32, 8));
        break;
    case IS_KILLED: raise(SIGKILL); break;
    case IS_STOPPED:
        await_heartbeats(whole);
        raise(SIGSTOP);
        break;
    default: EXPECT(false, "no such case of parts");
    }
}

/* The rank that fails does so in its row, or where its row is not, and the others wait in their columns: what
 * each waits for depends on the failing one only over others. */
static void lost_body(const struct comm *c, void *context)
{
    const struct failing_case *k = context;
    struct exec x = host_exec();
    struct comm row = row_of(c, 2), column = column_of(c, 2);
    float v[8] = {0};
    tensor t = tensor_1d(v, DTYPE_F32, 8);
    if (k->how == IS_KILLED) {
        signal(SIGTERM, SIG_IGN); /* mpirun sends it to the others */
    }
    (void)comm_agree(c, status_ok());
    if (k->how == IS_LATE && c->rank < 2) { /* else their deadline could be the first */
        await_word(I_GAVE_UP, 2);
    }
    if (c->rank == k->failing) {
        fail_in_part(c, &row, &x, k);
    } else if (c->rank == 2) {
        comm_all_reduce_sum(&row, &x, t); /* with the failing one */
        say(I_GAVE_UP, c->rank);
    } else if (c->rank == 0) {
        comm_all_reduce_sum(&column, &x, t); /* with rank 2 */
    } else {
        comm_receive(&row, &x, t, 0); /* who never comes to send it */
    }
    if (c->rank != k->failing) {
        EXPECT(failed(x.status) && strstr(x.status.message, k->wanted) != NULL, "rank %d: '%s' lacks '%s'",
               c->rank, x.status.message, k->wanted);
        struct exec later = host_exec(); /* the error stays, in every part */
        comm_all_reduce_sum(&column, &later, t);
        EXPECT(failed(later.status), "a sum after an error");
        EXPECT(failed(comm_agree(c, status_ok())), "an agreement after an error");
    }
    comm_part_close(&row);
    comm_part_close(&column);
}

static const struct comm_case peaceful[] = {
    {"grids", 2, RANKS_MOST, grids_body, {0}},
    {"uneven", 2, 5, uneven_body, {0}},
    {"nested", 8, 8, nested_body, {0}},
    {"sent_and_closed", 2, 4, sent_and_closed_body, {0}},
};

static const struct comm_case ending[] = {
    {"parts_disagree", 4, 4, disagree_body, {0}},
    {"part_fails", 4, 4, lost_body, {3, IN_A_SUM, "rank 3 of 4: embed in no layer on cpu: token id 99", 30}},
    {"part_fails_elsewhere",
     4,
     4,
     lost_body,
     {3, IN_A_GATHER, "rank 3 of 4: embed in no layer on cpu: token id 99", 30}},
    {"part_differs",
     4,
     4,
     lost_body,
     {3, SUMS_ANOTHER_SIZE, "rank 3 is in a sum of 7 elements, but rank 2 is in a sum of 8", 30}},
    {"part_leaves", 4, 4, lost_body, {3, LEAVES, "rank 3 of 4: the disk is full", 30}},
    {"part_has_left", 4, 4, lost_body, {3, LEAVES_IN_PEACE, "rank 3 of 4 has left", 30}},
    /* a deadline of the splits too */
    {"part_is_late", 4, 4, lost_body, {3, IS_LATE, "s in a sum for ranks: 3", 2}},
    {"part_killed", 4, 4, lost_body, {3, IS_KILLED, "rank 3 of 4 has ended", 30}},
    {"part_silent", 4, 4, lost_body, {3, IS_STOPPED, "has been silent for 2.0 s", 600}},
};

static const struct comm_cases cases = {peaceful, ending, sizeof peaceful / sizeof peaceful[0],
                                        sizeof ending / sizeof ending[0], FAKE_NCCL_LIBRARY};

int main(int argc, char **argv)
{
    return comm_cases_main(argc, argv, &cases, NULL);
}
