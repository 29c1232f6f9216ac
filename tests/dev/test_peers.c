/* Calls of peers between ops: each runs at its place whether the work runs, is recorded or is replayed, with
 * more of them than any fixed number of segments, and beside cuts that the caller makes; a failure drops the
 * recording, and ends a replay; bytes are counted, also on a table that only plans. */
#include "dev/peers.h"

#include "fixture_graphs.h"
#include "test.h"

enum { LAYERS = 60, MOST = 1000 };

/* What ran, in order: ops are positive, calls negative, the caller's own turn 0. */
static struct trace {
    int n, what[MOST];
} ran;

static void note(int what)
{
    EXPECT(ran.n < MOST, "more than %d notes", MOST);
    ran.what[ran.n++] = what;
}

/* ---- a device whose graphs are lists of ops ---- */

struct graph {
    int n, ops[MOST];
};

static struct recorder {
    struct graph *open; /* being recorded */
    int n_alive;
} recorder;

static struct status begin_graph(void *self)
{
    struct recorder *r = self;
    r->open = calloc(1, sizeof *r->open);
    EXPECT(r->open != NULL, "out of memory");
    return status_ok();
}

static struct status end_graph(void *self, void **graph)
{
    struct recorder *r = self;
    *graph = r->open;
    r->open = NULL;
    r->n_alive++;
    return status_ok();
}

static struct status launch_graph(void *self, void *graph)
{
    const struct graph *g = graph;
    (void)self;
    for (int i = 0; i < g->n; i++) {
        note(g->ops[i]);
    }
    return status_ok();
}

static void destroy_graph(void *self, void *graph)
{
    struct recorder *r = self;
    r->n_alive--;
    free(graph);
}

static const struct graph_runtime runtime = {begin_graph, end_graph, launch_graph, destroy_graph};

static void op(struct exec *x, int what)
{
    if (failed(x->status)) {
        return;
    }
    if (x->recording) {
        recorder.open->ops[recorder.open->n++] = what;
    } else {
        note(what);
    }
}

/* ---- peers that note what they are called for ---- */

static float values[LAYERS][4];
static int failing_call; /* the number of the call that fails; 0: none */
static int n_calls;

static void called(struct exec *x, int kind, tensor t)
{
    int layer = (int)((const float(*)[4])t.data - values);
    EXPECT(!x->recording, "a call is recorded");
    if (failed(x->status)) { /* a rank that has failed calls too */
        return;
    }
    note(-(10 * layer + kind));
    if (++n_calls == failing_call) {
        exec_fail(x, STATUS_IO, "peers", "a cable is out");
    }
}

static void sum(void *self, struct exec *x, tensor t)
{
    (void)self;
    called(x, 1, t);
}

static void gather(void *self, struct exec *x, tensor t)
{
    (void)self;
    called(x, 2, t);
}

static void scatter(void *self, struct exec *x, tensor t)
{
    (void)self;
    called(x, 3, t);
}

static const struct peers two = {.rank = 1, .size = 2, .sum = sum, .gather = gather, .scatter = scatter};

/* A pass of layers with calls, and one turn of the caller in the middle. */
static void pass(struct exec *x)
{
    static const int64_t key = 1;
    bool gives = queue_graph_begin(x, &key, sizeof key);
    if (!gives && !failed(x->status)) {
        note(0);
        queue_graph_replay(x);
        return;
    }
    for (int i = 0; i < LAYERS && gives; i++) {
        tensor t = tensor_1d(values[i], DTYPE_F32, 4);
        op(x, 100 + i);
        peers_gather(x, t);
        op(x, 200 + i);
        peers_scatter(x, t);
        if (i == LAYERS / 2) {
            queue_graph_cut(x);
            if (!failed(x->status)) {
                note(0);
            }
            queue_graph_resume(x);
        }
        peers_sum(x, t); /* at once after another cut */
        op(x, 300 + i);
    }
    queue_graph_end(x);
}

static struct exec exec_on(const struct device *device)
{
    n_calls = 0;
    ran.n = 0;
    return (struct exec){.device = device, .layer_index = -1, .peers = &two};
}

static void expect_same(const struct trace *wanted, const char *when)
{
    EXPECT(ran.n == wanted->n, "%s: %d things ran, not %d", when, ran.n, wanted->n);
    for (int i = 0; i < ran.n; i++) {
        EXPECT(ran.what[i] == wanted->what[i], "%s: %d ran at place %d, not %d", when, ran.what[i], i,
               wanted->what[i]);
    }
}

static void calls_keep_their_place(const struct device *plain, const struct device *recording)
{
    static const char *const turns[] = {"run", "recorded", "replayed", "replayed again"};
    struct exec x = exec_on(plain);
    pass(&x);
    EXPECT_OK(x.status);
    struct trace wanted = ran;
    EXPECT(wanted.n == 6 * LAYERS + 1, "%d things ran", wanted.n);
    recorder = (struct recorder){0};
    fixture_graph_cache = (struct graph_cache){.runtime = &runtime, .self = &recorder};
    for (int turn = 0; turn < 4; turn++) {
        x = exec_on(recording);
        pass(&x);
        EXPECT_OK(x.status);
        expect_same(&wanted, turns[turn]);
    }
    EXPECT(recorder.n_alive == 3 * LAYERS + 2 && fixture_graph_cache.n_graphs == 1,
           "%d segments of %d recordings", recorder.n_alive, fixture_graph_cache.n_graphs);
    graph_cache_clear(&fixture_graph_cache);
    EXPECT(recorder.n_alive == 0, "%d segments are left", recorder.n_alive);
}

/* The ops behind a call that failed do not run, in any turn; then the pass is recorded anew. */
static void a_failed_call_ends_the_pass(const struct device *plain, const struct device *recording)
{
    struct exec whole = exec_on(plain);
    pass(&whole);
    struct trace wanted = ran;
    recorder = (struct recorder){0};
    fixture_graph_cache = (struct graph_cache){.runtime = &runtime, .self = &recorder};
    for (int turn = 0; turn < 5; turn++) {
        struct exec x = exec_on(recording);
        failing_call = turn == 1 || turn == 4 ? 5 : 0; /* recorded: dropped; then run, recorded, replayed */
        pass(&x);
        if (failing_call == 0) {
            EXPECT_OK(x.status);
            continue;
        }
        EXPECT_ERROR(x.status, STATUS_IO, "a cable is out");
        EXPECT(ran.n > 0 && ran.n < wanted.n && ran.what[ran.n - 1] == -(10 + 3), "turn %d: %d things ran",
               turn, ran.n);
        for (int i = 0; i < ran.n; i++) {
            EXPECT(ran.what[i] == wanted.what[i], "%d ran at place %d", ran.what[i], i);
        }
        EXPECT(turn != 1 || recorder.n_alive == 0, "%d segments are left", recorder.n_alive);
    }
    failing_call = 0;
    graph_cache_clear(&fixture_graph_cache);
    EXPECT(recorder.n_alive == 0, "%d segments are left", recorder.n_alive);
}

/* A rank of n sends 2 (n - 1) / n of a sum, and half of that in a gathering or a sum in parts. */
static void bytes_are_counted(void)
{
    static const struct peers planned = {.rank = 0, .size = 4};
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    tensor t = tensor_2d(NULL, DTYPE_BF16, 8, 100);
    peers_sum(&x, t);
    EXPECT(x.totals.peer_bytes == 0 && peers_size(&x) == 1 && peers_rank(&x) == 0, "%g bytes without peers",
           x.totals.peer_bytes);
    x.peers = &planned;
    peers_sum(&x, t);
    EXPECT(x.totals.peer_bytes == 2400, "%g bytes of a sum", x.totals.peer_bytes);
    peers_gather(&x, t);
    peers_scatter(&x, t);
    EXPECT(x.totals.peer_bytes == 4800, "%g bytes", x.totals.peer_bytes);
    EXPECT(peers_size(&x) == 4, "%d peers", peers_size(&x));
}

int main(void)
{
    struct device plain = device_cpu, recording = device_cpu;
    recording.graphs = &fixture_graphs;
    calls_keep_their_place(&plain, &recording);
    a_failed_call_ends_the_pass(&plain, &recording);
    bytes_are_counted();
    return 0;
}
