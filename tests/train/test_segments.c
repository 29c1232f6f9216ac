/* Where a host that sums gradients gets its turn: between the segments of a recording, after the one that
 * computes them.  A device of the host's memory, whose recorder runs ops as they are given and notes what it
 * is told; so replays compute nothing, and their order is all that is compared.  And errors of the host at
 * its turn, and of ops. */
#include "bert_fixture.h"
#include "fixture_graphs.h"

#include "ops/op_watch.h"

enum { LONGEST = 14, SEQUENCES = 3, BUCKETS = 4, NOTES = 400 };

/* What happened, in order: "(" and ")" a segment is recorded, "L0" the first graph of the recorder launched,
 * "d1" the host told of bucket 1, "o" the first op given. */
static struct noted {
    char text[NOTES];
    size_t used;
    bool gives; /* the last note is of an op */
} noted;

static void note(const char *what, int number)
{
    size_t room = NOTES - noted.used;
    noted.gives = false;
    int n = number < 0 ? snprintf(noted.text + noted.used, room, "%s", what)
                       : snprintf(noted.text + noted.used, room, "%s%d", what, number);
    EXPECT(n >= 0 && (size_t)n < room, "more notes than %d bytes", NOTES);
    noted.used += (size_t)n;
}

static void note_op(const struct exec *x)
{
    if (!noted.gives && !failed(x->status)) {
        note("o", -1);
        noted.gives = true;
    }
}

/* ---- a device whose graphs are numbers ---- */

static struct recorder {
    int n_made, n_alive;
} recorder;

static struct status record_begin(void *self)
{
    (void)self;
    note("(", -1);
    return status_ok();
}

static struct status record_end(void *self, void **graph)
{
    struct recorder *r = self;
    int *number = malloc(sizeof *number);
    EXPECT(number != NULL, "out of memory");
    *number = r->n_made++;
    r->n_alive++;
    *graph = number;
    note(")", -1);
    return status_ok();
}

static struct status record_launch(void *self, void *graph)
{
    (void)self;
    note("L", *(int *)graph);
    return status_ok();
}

static void record_destroy(void *self, void *graph)
{
    struct recorder *r = self;
    free(graph);
    r->n_alive--;
}

static const struct graph_runtime runtime = {record_begin, record_end, record_launch, record_destroy};

static int64_t failing_layer = -1; /* one op of its backward fails */

static void linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool adds)
{
    note_op(x);
    if (failing_layer >= 0 && x->layer_index == failing_layer) {
        exec_fail(x, STATUS_USAGE, "linear_backward_input", "made to fail");
    }
    ops_cpu()->linear_backward_input(x, din, dout, w, adds);
}

/* ---- a host that is told of gradients ---- */

struct host {
    struct trainer *t;
    const float *wanted; /* the gradients of the whole step, or NULL: they are not compared */
    int fails_at;        /* bucket; -1: never */
};

static void told(void *context, int bucket)
{
    struct host *h = context;
    struct trainer *t = h->t;
    note("d", bucket);
    tensor grad = param_buckets_view(&t->net.stage.buckets, bucket, &t->net.params, t->grad);
    if (h->wanted != NULL) {
        const float *wanted = h->wanted + ((const float *)grad.data - (const float *)t->grad.data);
        EXPECT(memcmp(grad.data, wanted, tensor_bytes(grad)) == 0, "gradients of bucket %d come later",
               bucket);
    }
    if (bucket == h->fails_at) {
        exec_fail(&t->net.x, STATUS_INTERNAL, "a sum", "the network is down");
    }
}

static void open_trainer(struct trainer *t, const struct device *device, const struct ops *ops,
                         const struct batch_step *batch)
{
    struct trainer_config config = fixture_trainer(ops, DTYPE_F32, batch->micro[0].limits);
    config.net.device = device;
    config.bucket_elements = 1;
    EXPECT_OK(trainer_init(t, &config));
    EXPECT(t->net.stage.buckets.n == BUCKETS, "%d buckets", t->net.stage.buckets.n);
}

/* The gradients of a step, with a host that is told of them, or without. */
static void gradients(struct trainer *t, struct host *h, const struct batch_step *batch)
{
    trainer_begin_step(t, 1, 1, 1e-2);
    noted = (struct noted){0};
    t->gradient_done = h == NULL ? NULL : told;
    t->gradient_done_context = h;
    trainer_queue_gradients(t, batch);
    t->gradient_done = NULL;
}

static void expect_notes(const char *wanted, const char *when)
{
    EXPECT(strcmp(noted.text, wanted) == 0, "%s: %s, not %s", when, noted.text, wanted);
}

static void the_host_has_its_turn(struct trainer *t, const struct trainer *plain,
                                  const struct batch_step *batch)
{
    struct host h = {.t = t, .wanted = plain->grad.data, .fails_at = -1};
    gradients(t, &h, batch);
    expect_notes("od0od1od2d3", "given");
    EXPECT(memcmp(t->grad.data, h.wanted, tensor_bytes(t->grad)) == 0, "other gradients, given");
    gradients(t, &h, batch);
    expect_notes("(o)L0d0(o)L1d1(o)L2d2()L3d3", "recorded");
    EXPECT(memcmp(t->grad.data, h.wanted, tensor_bytes(t->grad)) == 0, "other gradients, recorded");
    h.wanted = NULL;
    gradients(t, &h, batch);
    expect_notes("L0d0L1d1L2d2L3d3", "replayed");
    EXPECT_OK(t->net.x.status);
}

/* Without a host the same passes are another work, of one segment. */
static void nobody_asks(struct trainer *t, const struct batch_step *batch)
{
    gradients(t, NULL, batch);
    expect_notes("o", "given");
    gradients(t, NULL, batch);
    expect_notes("(o)L4", "recorded");
    gradients(t, NULL, batch);
    expect_notes("L4", "replayed");
    struct host h = {.t = t, .fails_at = -1};
    gradients(t, &h, batch);
    expect_notes("L0d0L1d1L2d2L3d3", "replayed again");
    EXPECT_OK(t->net.x.status);
}

/* The host fails at its second turn: no further work is queued, it still has all its turns, and after an
 * error while a step is recorded nothing of it is left. */
static void an_error_ends_the_step(struct trainer *t, const struct batch_step *batch)
{
    static const struct turn {
        int fails_at;
        const char *wanted;
        int n_alive;
    } turns[] = {
        {1, "od0od1d2d3", 0}, /* given */
        {1, "(o)L0d0(o)L1d1d2d3", 0},
        {-1, "od0od1od2d3", 0}, /* it was forgotten */
        {3, "(o)L2d0(o)L3d1(o)L4d2()L5d3", BUCKETS},
        {1, "L2d0L3d1d2d3", BUCKETS},
        {-1, "L2d0L3d1L4d2L5d3", BUCKETS},
    };
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        struct host h = {.t = t, .fails_at = turns[i].fails_at};
        gradients(t, &h, batch);
        expect_notes(turns[i].wanted, "with an error");
        EXPECT(recorder.n_alive == turns[i].n_alive, "%d graphs after %s", recorder.n_alive, turns[i].wanted);
        if (turns[i].fails_at < 0) {
            EXPECT_OK(t->net.x.status);
        } else {
            EXPECT_ERROR(t->net.x.status, STATUS_INTERNAL, "a sum");
            EXPECT(strstr(t->net.x.status.message, "the network is down") != NULL, "%s",
                   t->net.x.status.message);
        }
        t->net.x.status = status_ok();
    }
}

/* An op fails in the second segment: the host still has its turns, and nothing is recorded. */
static void an_op_fails(struct trainer *t, const struct batch_step *batch)
{
    struct host h = {.t = t, .fails_at = -1};
    gradients(t, &h, batch);
    expect_notes("od0od1od2d3", "given");
    failing_layer = 1;
    gradients(t, &h, batch);
    failing_layer = -1;
    expect_notes("(o)L0d0(o)d1d2d3", "with an op that fails");
    EXPECT(recorder.n_alive == 0, "%d graphs", recorder.n_alive);
    EXPECT_ERROR(t->net.x.status, STATUS_USAGE, "linear_backward_input in layer 1");
    t->net.x.status = status_ok();
}

static void watch_op(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)w, (void)call;
    note_op(x);
}

/* Every op is given in every step, and the host has its turns. */
static void watched_ops_are_given(struct trainer *t, const struct batch_step *batch)
{
    struct op_watch w;
    struct host h = {.t = t, .fails_at = -1};
    const struct ops *ops = t->net.x.ops;
    op_watch_init(&w, ops_cpu());
    w.after = watch_op;
    t->net.x.ops = &w.table;
    for (int i = 0; i < 3; i++) {
        gradients(t, &h, batch);
        expect_notes("od0od1od2od3", "watched");
    }
    t->net.x.ops = ops;
    EXPECT_OK(t->net.x.status);
}

static void reset(void)
{
    graph_cache_clear(&fixture_graph_cache);
    EXPECT(recorder.n_alive == 0, "%d graphs are left", recorder.n_alive);
    recorder = (struct recorder){0};
    fixture_graph_cache = (struct graph_cache){.runtime = &runtime, .self = &recorder};
}

int main(void)
{
    struct device device = device_cpu;
    struct ops ops = *ops_cpu();
    struct batch_step batch;
    struct trainer plain, t;
    device.graphs = &fixture_graphs;
    ops.linear_backward_input = linear_backward_input;
    fixture_graph_cache = (struct graph_cache){.runtime = &runtime, .self = &recorder};
    fixture_step(&batch, 1, SEQUENCES, LONGEST);
    open_trainer(&plain, &device, ops_cpu(), &batch);
    gradients(&plain, NULL, &batch);
    EXPECT_OK(plain.net.x.status);
    reset();
    open_trainer(&t, &device, &ops, &batch);
    the_host_has_its_turn(&t, &plain, &batch);
    nobody_asks(&t, &batch);
    reset();
    an_error_ends_the_step(&t, &batch);
    reset();
    an_op_fails(&t, &batch);
    reset();
    watched_ops_are_given(&t, &batch);
    trainer_fini(&t);
    trainer_fini(&plain);
    batch_step_fini(&batch);
    return 0;
}
