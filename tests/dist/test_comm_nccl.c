/* Ranks over NCCL, the fake library of tests/fake_nccl on a device whose streams are threads: collectives run
 * beside the exec's work and are joined; every call of NCCL fails or hangs once, and then all ranks end with
 * the reason; and where NCCL cannot be used, ranks say why and go through the host. */
#include "dist/comm_device.h"

#include "core/json.h"
#include "over_nccl.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { N = 40000 /* fp32 in three of the fake library's pieces */, RANKS = 3 };

static const double DEADLINE_S = 30, SHORT_S = 0.4;

static const char library[] = FAKE_NCCL_LIBRARY;

static void open_rank(struct comm_device *d, struct exec *x, const struct comm *control, double deadline_s,
                      const char *record)
{
    struct comm_nccl_config config = {.deadline_s = deadline_s, .record = record};
    *x = thread_device_exec(over_nccl_chip(control->rank));
    EXPECT_OK(comm_device_open(d, control, x, &config));
    EXPECT(d->nccl != NULL, "ranks do not use NCCL");
}

static void close_rank(struct comm_device *d, struct exec *x)
{
    comm_device_close(d);
    thread_device_close(x);
}

static void pause_for(int64_t ms)
{
    /* time: results are right after any pause */
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* ---- sums run beside, behind and before the exec's own work ---- */

struct slow {
    float *v;
    float adds;
    _Atomic bool has_run;
};

/* Work of an exec that takes its time. */
static void add_slowly(void *argument)
{
    struct slow *s = argument;
    pause_for(30);
    for (int i = 0; i < N; i++) {
        s->v[i] += s->adds;
    }
    atomic_store(&s->has_run, true);
}

/* Each rank's gradients are written slowly, summed, and read by slow work; meanwhile other work runs, since
 * the last rank is late to queue its sum. */
static void beside_body(const struct comm *control, void *context)
{
    struct comm_device d;
    struct exec x;
    float *v = calloc(N, sizeof *v), *other = calloc(N, sizeof *other);
    struct slow gradient = {.v = v, .adds = (float)(control->rank + 1)}, beside = {.v = other},
                after = {.v = v, .adds = 100};
    (void)context;
    open_rank(&d, &x, control, DEADLINE_S, NULL);
    EXPECT(d.comm.type->sums_in_another_order, "NCCL keeps the rule of sums");
    for (int round = 0; round < 2; round++) {
        memset(v, 0, N * sizeof *v);
        thread_device_give(&x, add_slowly, &gradient);
        if (control->rank == RANKS - 1) {
            pause_for(60);
        }
        comm_queue_all_reduce_sum(&d.comm, &x, tensor_1d(v, DTYPE_F32, N));
        atomic_store(&beside.has_run, false);
        thread_device_give(&x, add_slowly, &beside);
        comm_join(&d.comm, &x);
        thread_device_give(&x, add_slowly, &after);
        EXPECT_OK(x.status);
        exec_synchronize(&x);
        EXPECT_OK(comm_check(&d.comm));
        EXPECT(atomic_load(&beside.has_run), "the work beside did not run");
        for (int i = 0; i < N; i++) {
            EXPECT(v[i] == 1 + 2 + 3 + 100, "element %d of rank %d: %g", i, control->rank, (double)v[i]);
        }
    }
    close_rank(&d, &x);
    free(v);
    free(other);
}

/* Rank 0's work behind its sum has run. */
static _Atomic bool has_overtaken;

static void overtake(void *argument)
{
    (void)argument;
    atomic_store(&has_overtaken, true);
}

static void wait_until_overtaken(void *argument)
{
    (void)argument;
    while (!atomic_load(&has_overtaken)) {
        pause_for(1);
    }
}

/* A sum that waits for another rank does not hold up the work behind it before the join: here that rank comes
 * to its sum only when that work has run, and else all wait until the test's time is over. */
static void overlap_body(const struct comm *control, void *context)
{
    struct comm_device d;
    struct exec x;
    float v[2] = {1, 2};
    (void)context;
    open_rank(&d, &x, control, DEADLINE_S, NULL);
    if (control->rank == 1) {
        thread_device_give(&x, wait_until_overtaken, NULL);
    }
    comm_queue_all_reduce_sum(&d.comm, &x, tensor_1d(v, DTYPE_F32, 2));
    if (control->rank == 0) {
        thread_device_give(&x, overtake, NULL);
        wait_until_overtaken(NULL);
    }
    comm_join(&d.comm, &x);
    exec_synchronize(&x);
    EXPECT_OK(comm_check(&d.comm));
    EXPECT(v[0] == 2 && v[1] == 4, "%g %g", (double)v[0], (double)v[1]);
    close_rank(&d, &x);
}

/* ---- many in flight ---- */

static void many_body(const struct comm *control, void *context)
{
    enum { MANY = 200 };
    struct comm_device d;
    struct exec x;
    float v[MANY];
    (void)context;
    open_rank(&d, &x, control, DEADLINE_S, NULL);
    for (int i = 0; i < MANY; i++) {
        v[i] = (float)i;
        comm_queue_all_reduce_sum(&d.comm, &x, tensor_1d(&v[i], DTYPE_F32, 1));
    }
    comm_join(&d.comm, &x);
    exec_synchronize(&x);
    EXPECT_OK(comm_check(&d.comm));
    for (int i = 0; i < MANY; i++) {
        EXPECT(v[i] == (float)(control->size * i), "sum %d: %g", i, (double)v[i]);
    }
    close_rank(&d, &x);
}

/* ---- errors ---- */

struct fate {
    const char *text;   /* of the fake library */
    const char *wanted; /* in the error of all ranks; NULL: there is none */
    double deadline_s;
};

/* The collectives of a step, and the error that a rank ends with: in one of them, at the check, or at the
 * next agreement. */
static struct status step(const struct comm_device *d, struct exec *x, float *v)
{
    int64_t equal[RANKS + 1] = {0, 10, 20, 30}, unequal[RANKS + 1] = {0, 5, 5, 30};
    comm_queue_all_reduce_sum(&d->comm, x, tensor_1d(v, DTYPE_F32, N));
    comm_all_reduce_max(&d->comm, x, tensor_1d(v, DTYPE_F32, 100));
    comm_all_gather(&d->comm, x, tensor_1d(v, DTYPE_F32, 30), equal);
    comm_all_gather(&d->comm, x, tensor_1d(v, DTYPE_F32, 30), unequal);
    comm_broadcast(&d->comm, x, tensor_1d(v, DTYPE_F32, 30), 1);
    x->device->synchronize(x->context);
    struct status s = failed(x->status) ? x->status : comm_check(&d->comm);
    return comm_agree(&d->comm, s);
}

static void fated_body(const struct comm *control, void *context)
{
    const struct fate *f = context;
    struct comm_nccl_config config = {.deadline_s = f->deadline_s};
    struct comm_device d = {0};
    struct exec x = thread_device_exec(over_nccl_chip(control->rank));
    float *v = calloc(N, sizeof *v);
    struct status s = comm_device_open(&d, control, &x, &config);
    s = failed(s) ? s : step(&d, &x, v);
    if (f->wanted == NULL) {
        EXPECT_OK(s);
    } else {
        EXPECT(failed(s) && strstr(s.message, f->wanted) != NULL, "%s: rank %d: '%s' lacks '%s'", f->text,
               control->rank, s.message, f->wanted);
        if (d.nccl != NULL) { /* the error stays */
            EXPECT(failed(comm_agree(&d.comm, status_ok())), "%s: an agreement after an error", f->text);
        }
    }
    comm_device_close(&d);
    thread_device_close(&x);
    free(v);
}

static void expect_fate(const struct fate *f)
{
    over_nccl_use(library, f->text);
    run_ranks(RANKS, DEADLINE_S, fated_body, (void *)f);
}

/* Each call of each rank fails: those of a step and those at its ends.  Others hear of it in their next call;
 * if there is none, or they are at the start, where they wait for that rank, at the deadline. */
static void every_call_fails(void)
{
    enum { CALLS = 7 }; /* a start, a sum, a maximum, a gathering, one as two broadcasts, a broadcast */
    expect_fate(&(struct fate){"id;fail:GetUniqueId:1@0", "rank 0 of 3: NCCL gives no id", DEADLINE_S});
    for (int rank = 0; rank < RANKS; rank += 2) {
        for (int n = 1; n <= CALLS; n++) {
            char text[64], wanted[128];
            bool waits = n == 1 || n == CALLS;
            if (waits && rank == 0) { /* as for others */
                continue;
            }
            snprintf(text, sizeof text, "%d %d;fail:any:%d@%d", rank, n, n + (rank == 0), rank);
            snprintf(wanted, sizeof wanted,
                     "rank %d of %d: %s of NCCL failed: unhandled system error: as FAKE_NCCL asks", rank,
                     RANKS, n == 1 ? "the start" : "a collective");
            expect_fate(&(struct fate){text, waits ? "rank 0 of 3: " : wanted, waits ? SHORT_S : DEADLINE_S});
        }
    }
}

static struct status lost(void *state)
{
    (void)state;
    return status_error(STATUS_IO, "rank 1 of 3 on h2 has been silent for 10.0 s");
}

/* A communicator on the host that knows of a lost rank: the wait for a collective ends long before its
 * deadline. */
static void lost_body(const struct comm *control, void *context)
{
    struct comm_type type = *control->type;
    struct comm c = *control;
    type.lost = lost;
    c.type = &type;
    fated_body(&c, context);
}

static void a_lost_rank_ends_the_wait(void)
{
    struct fate f = {"l1;hang:AllReduce:1@1", "rank 1 of 3 on h2 has been silent", DEADLINE_S};
    over_nccl_use(library, f.text);
    run_ranks(RANKS, DEADLINE_S, lost_body, &f);
}

/* Calls that hang: those that were queued, the start; or that tell of another rank. */
static void hangs_end_at_the_deadline(void)
{
    static const struct fate fates[] = {
        {"h1;hang:AllReduce:1@1",
         " of 3 waited 0.4 s in a sum of 40000 elements of fp32 over NCCL for ranks 0 to 2", SHORT_S},
        {"h2;hang:AllReduce:2@0", "of 3 waited 0.4 s in a maximum of 100 elements", SHORT_S},
        {"h3;hang:AllGather:1@2", "of 3 waited 0.4 s in a gathering of 30 elements", SHORT_S},
        /* rank 0 may have given its part, and be in the next call */
        {"h4;hang:Broadcast:2@2", "of 3 waited 0.4 s in a ", SHORT_S},
        {"h5;hang:CommInitRankConfig:1@1", "waited 0.4 s in the start of NCCL for the other ranks", SHORT_S},
        {"r1;remote:AllReduce:1@1", "rank 1 of 3: a collective of NCCL failed: remote process exited",
         DEADLINE_S},
        {"d1;delay:AllReduce:1@1", NULL, DEADLINE_S},
        {"e1;hang:CommFinalize:1@1", NULL, SHORT_S}, /* it gives up */
        {"e2;fail:CommFinalize:1@1", NULL, DEADLINE_S},
    };
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++) {
        expect_fate(&fates[i]);
    }
}

/* ---- the flight recorder ---- */

static void expect_flight(const json_t *flight, const char *kind, int64_t elements, const char *state)
{
    EXPECT(strcmp(json_string_value(json_object_get(flight, "kind")), kind) == 0 &&
               json_integer_value(json_object_get(flight, "elements")) == elements &&
               json_integer_value(json_object_get(flight, "bytes")) == elements * 4 &&
               strcmp(json_string_value(json_object_get(flight, "state")), state) == 0,
           "not %s of %lld elements, %s: %s", kind, (long long)elements, state, json_dumps(flight, 0));
}

static void recorded_body(const struct comm *control, void *context)
{
    struct comm_device d;
    struct exec x;
    float *v = calloc(N, sizeof *v);
    char path[256];
    snprintf(path, sizeof path, "%s_%d.json", (const char *)context, control->rank);
    open_rank(&d, &x, control, SHORT_S, path);
    comm_all_reduce_sum(&d.comm, &x, tensor_1d(v, DTYPE_F32, 7));
    comm_all_reduce_sum(&d.comm, &x, tensor_1d(v, DTYPE_F32, N));
    x.device->synchronize(x.context);
    struct status s = comm_agree(&d.comm, comm_check(&d.comm));
    EXPECT(strstr(s.message, "the last collectives are in ") != NULL, "'%s'", s.message);
    json_t *root;
    EXPECT_OK(json_read_object(&root, path));
    const json_t *flights = json_object_get(root, "collectives");
    EXPECT(json_integer_value(json_object_get(root, "rank")) == control->rank, "not the rank");
    EXPECT(json_array_size(flights) == 2, "%zu collectives", json_array_size(flights));
    expect_flight(json_array_get(flights, 0), "a sum", 7, "ended");
    expect_flight(json_array_get(flights, 1), "a sum", N, "given up");
    EXPECT(json_is_real(json_object_get(json_array_get(flights, 1), "started_s")) &&
               json_is_null(json_object_get(json_array_get(flights, 1), "ended_s")),
           "%s", json_dumps(flights, 0));
    json_decref(root);
    unlink(path);
    close_rank(&d, &x);
    free(v);
}

/* ---- where NCCL cannot be used ---- */

struct chooser {
    const char *library, *fate;
    bool share_chip, keeps_rule;
    const char *wanted; /* "nccl", "staged" */
};

static void choosing_body(const struct comm *control, void *context)
{
    const struct chooser *c = context;
    struct comm_nccl_config config = {.deadline_s = DEADLINE_S, .keeps_rule = c->keeps_rule};
    struct comm_device d;
    struct exec x = thread_device_exec(over_nccl_chip(c->share_chip ? 0 : control->rank));
    float v[3] = {1, 2, 3};
    EXPECT_OK(comm_device_open(&d, control, &x, &config));
    const char *is = d.comm.stage != NULL ? "staged" : d.comm.type->name;
    EXPECT(strcmp(is, c->wanted) == 0, "%s, not %s", is, c->wanted);
    comm_all_reduce_sum(&d.comm, &x, tensor_1d(v, DTYPE_F32, 3));
    exec_synchronize(&x);
    EXPECT(v[2] == 3 * (float)control->size, "%g", (double)v[2]);
    EXPECT_OK(x.status);
    comm_device_close(&d);
    thread_device_close(&x);
}

static void host_body(const struct comm *control, void *context)
{
    struct comm_device d;
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    (void)context;
    EXPECT_OK(comm_device_open(&d, control, &x, NULL));
    EXPECT(d.comm.type == control->type && d.comm.state == control->state, "not the host's own");
    comm_device_close(&d);
}

static void ranks_choose(void)
{
    static const struct chooser alone = {"none.so", "", false, false, "self"};
    const struct chooser choosers[] = {
        {library, "", false, false, "nccl"},
        {library, "", true, false, "staged"},
        {library, "", false, true, "staged"},
        {"/nowhere/libnccl.so.2", "", false, false, "staged"},
        {library, "old;version=21300", false, false, "staged"},
        {library, "older;version=2804", false, false, "staged"},
    };
    struct nccl_library l;
    for (size_t i = 0; i < sizeof choosers / sizeof choosers[0]; i++) {
        over_nccl_use(choosers[i].library, choosers[i].fate);
        run_ranks(2, DEADLINE_S, choosing_body, (void *)&choosers[i]);
    }
    run_ranks(1, DEADLINE_S, choosing_body, (void *)&alone);
    run_ranks(2, DEADLINE_S, host_body, NULL);
    over_nccl_use("/nowhere/libnccl.so.2", "");
    EXPECT_ERROR(nccl_library_load(&l), STATUS_UNAVAILABLE, "/nowhere/libnccl.so.2 cannot be loaded");
    over_nccl_use(library, "old;version=21300");
    EXPECT_ERROR(nccl_library_load(&l), STATUS_UNAVAILABLE, "is NCCL 2.13.0, and kiln needs 2.14.0 or later");
}

int main(void)
{
    char record[128];
    over_nccl_use(library, "");
    run_ranks(RANKS, DEADLINE_S, beside_body, NULL);
    run_ranks(2, DEADLINE_S, overlap_body, NULL);
    run_ranks(2, DEADLINE_S, many_body, NULL);
    ranks_choose();
    every_call_fails();
    hangs_end_at_the_deadline();
    a_lost_rank_ends_the_wait();
    over_nccl_use(library, "recorded;hang:AllReduce:2@1");
    snprintf(record, sizeof record, "/tmp/kiln_test_comm_nccl_%d", (int)getpid());
    run_ranks(2, DEADLINE_S, recorded_body, record);
    return 0;
}
