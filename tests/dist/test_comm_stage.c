/* Ranks whose tensors are in a device's memory: through the host's they exchange what the host's own tensors
 * do, also in several pieces, and a copy that fails on one rank is heard by all. */
#include "dist/comm_stage.h"

#include "ranks.h"

#include <stdatomic.h>

enum { N = COMM_STAGE_PIECE_BYTES / 4 + 1000 /* fp32 in two pieces */, RANKS = 3 };

static const double DEADLINE_S = 30;

/* A device whose addresses are host addresses with a bit more, so that touching them from the host faults. */
static const uintptr_t FAR = (uintptr_t)1 << 62;
static _Atomic int copies_until_failure; /* -1: none fails */

static void *far_of(const void *p)
{
    return (void *)((uintptr_t)p ^ FAR);
}

static struct status copy_of_far(void *to, const void *from, size_t bytes)
{
    if (atomic_load(&copies_until_failure) >= 0 && atomic_fetch_sub(&copies_until_failure, 1) == 0) {
        return status_error(STATUS_INTERNAL, "the device is gone");
    }
    memcpy(to, from, bytes);
    return status_ok();
}

static struct status copy_in(void *context, void *on_device, const void *on_host, size_t bytes)
{
    (void)context;
    return copy_of_far(far_of(on_device), on_host, bytes);
}

static struct status copy_out(void *context, void *on_host, const void *on_device, size_t bytes)
{
    (void)context;
    return copy_of_far(on_host, far_of(on_device), bytes);
}

static const struct device device_far = {.name = "far", .copy_in = copy_in, .copy_out = copy_out};

struct far_rank {
    struct comm_stage stage;
    struct comm comm;
    struct exec x;
    float *v; /* [N] */
    tensor t; /* them, by the device's addresses */
};

static void open_rank(struct far_rank *r, const struct comm *c)
{
    *r = (struct far_rank){.x = {.device = &device_far, .layer_index = -1}, .v = malloc(N * sizeof(float))};
    EXPECT_OK(comm_stage_init(&r->stage, c->size));
    r->comm = *c;
    r->comm.stage = &r->stage;
    r->t = tensor_1d(far_of(r->v), DTYPE_F32, N);
}

static void close_rank(struct far_rank *r)
{
    comm_stage_fini(&r->stage);
    free(r->v);
}

static void fill(struct far_rank *r)
{
    for (int64_t i = 0; i < N; i++) {
        r->v[i] = (float)(i % 1000 + 1000 * r->comm.rank);
    }
}

static void expect_all(const struct far_rank *r, const char *what, float (*wanted)(int64_t i))
{
    EXPECT_OK(r->x.status);
    for (int64_t i = 0; i < N; i++) {
        EXPECT(r->v[i] == wanted(i), "%s: element %lld of rank %d is %g, not %g", what, (long long)i,
               r->comm.rank, (double)r->v[i], (double)wanted(i));
    }
}

static float summed(int64_t i)
{
    return (float)(3 * (i % 1000) + 3000);
}

static float largest(int64_t i)
{
    return (float)(i % 1000 + 2000);
}

static float of_rank_1(int64_t i)
{
    return (float)(i % 1000 + 1000);
}

/* Rank 0 has 10, rank 1 none, rank 2 the rest. */
static float gathered(int64_t i)
{
    return (float)(i % 1000 + (i < 10 ? 0 : 2000));
}

static void collectives_body(const struct comm *c, void *context)
{
    static const int64_t parts[] = {0, 10, 10 + COMM_STAGE_PIECE_BYTES / 4, N};
    struct far_rank r;
    (void)context;
    open_rank(&r, c);
    fill(&r);
    comm_all_reduce_sum(&r.comm, &r.x, r.t);
    expect_all(&r, "a sum", summed);
    fill(&r);
    comm_all_reduce_max(&r.comm, &r.x, r.t);
    expect_all(&r, "a maximum", largest);
    fill(&r);
    comm_broadcast(&r.comm, &r.x, r.t, 1);
    expect_all(&r, "a broadcast", of_rank_1);
    fill(&r);
    comm_all_gather(&r.comm, &r.x, r.t, (const int64_t[]){0, 10, 10, N});
    expect_all(&r, "a gather", gathered);
    fill(&r);
    comm_queue_reduce_scatter_sum(&r.comm, &r.x, r.t, parts);
    EXPECT_OK(r.x.status);
    for (int64_t i = 0; i < N; i++) { /* and nothing else is written */
        bool mine = i >= parts[c->rank] && i < parts[c->rank + 1];
        EXPECT(r.v[i] == (mine ? summed(i) : (float)(i % 1000 + 1000 * c->rank)), "element %lld of rank %d",
               (long long)i, c->rank);
    }
    comm_all_reduce_sum(&r.comm, &r.x, tensor_1d(NULL, DTYPE_F32, 0));
    comm_queue_reduce_scatter_sum(&r.comm, &r.x, tensor_1d(NULL, DTYPE_F32, 0),
                                  (const int64_t[]){0, 0, 0, 0});
    EXPECT_OK(r.x.status);
    close_rank(&r);
}

static void messages_body(const struct comm *c, void *context)
{
    struct far_rank r;
    (void)context;
    open_rank(&r, c);
    fill(&r);
    if (c->rank == 1) {
        comm_send(&r.comm, &r.x, r.t, 0);
    } else if (c->rank == 0) {
        comm_receive(&r.comm, &r.x, r.t, 1);
        expect_all(&r, "a message", of_rank_1);
    }
    close_rank(&r);
}

/* Which rank's copy fails is a matter of timing; all hear of it, at the latest in their next call. */
static void failing_body(const struct comm *c, void *context)
{
    struct far_rank r;
    (void)context;
    open_rank(&r, c);
    fill(&r);
    comm_all_reduce_sum(&r.comm, &r.x, r.t);
    comm_all_reduce_sum(&r.comm, &r.x, r.t);
    EXPECT_ERROR(r.x.status, STATUS_INTERNAL, "of 3: a copy in no layer on far: the device is gone");
    close_rank(&r);
}

int main(void)
{
    atomic_store(&copies_until_failure, -1);
    run_ranks(RANKS, DEADLINE_S, collectives_body, NULL);
    run_ranks(2, DEADLINE_S, messages_body, NULL);
    for (int n = 0; n < 4 * RANKS; n++) { /* each of the copies of a sum of two pieces */
        atomic_store(&copies_until_failure, n);
        run_ranks(RANKS, DEADLINE_S, failing_body, NULL);
    }
    return 0;
}
