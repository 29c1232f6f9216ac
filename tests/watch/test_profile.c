/* The profiler: a timed table computes the same bits as the table inside it, counts every call and keeps to
 * its room; a window of micro-steps gives a trace that keeps the rules of the Chrome trace event format, and
 * shows the copies of batches where there are any. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include "bert_fixture.h"
#include "fenced_device.h"

#include "core/clock.h"
#include "core/json.h"
#include "io/file.h"
#include "watch/profile.h"

#include <time.h>
#include <unistd.h>

enum { LONGEST = 14, N_MICRO = 2 };

static bool is_op(const char *name)
{
    int i = 0;
    while (i < OP_WATCH_N_OPS && strcmp(op_watch_name(i), name) != 0) {
        i++;
    }
    return i < OP_WATCH_N_OPS;
}

static void init_trainer(struct trainer *t, const struct batch_step *step)
{
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
    EXPECT_OK(trainer_init(t, &config));
}

static void take_step(struct trainer *t, const struct batch_step *step, int64_t number)
{
    struct trainer_result r;
    EXPECT_OK(trainer_step(t, step, number, number, 1e-3, &r));
}

static void timed_ops_compute_the_same(const struct batch_step *step)
{
    struct trainer plain, timed;
    struct op_timer timer;
    init_trainer(&plain, step);
    init_trainer(&timed, step);
    EXPECT_OK(op_timer_init(&timer, &timed.net.x, 5)); /* too few for a step */
    take_step(&plain, step, 1);
    op_timer_attach(&timer);
    take_step(&timed, step, 1);
    op_timer_detach(&timer);
    EXPECT(timed.net.x.ops == ops_cpu(), "the plain table is not back");
    EXPECT(memcmp(plain.net.master.data, timed.net.master.data, tensor_bytes(plain.net.master)) == 0,
           "other weights");

    int64_t calls = 0;
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        const struct op_total *o = &timer.totals[i];
        calls += o->n_calls;
        EXPECT(is_op(o->op), "%s", o->op);
        EXPECT(o->n_calls == 0 || (o->bytes > 0 && o->ns > 0), "%s: %g bytes, %lld ns", o->op, o->bytes,
               (long long)o->ns);
        EXPECT(strcmp(o->op, "linear") != 0 || o->n_calls == N_MICRO * (2 * 3 + 3), "%lld products",
               (long long)o->n_calls);
    }
    EXPECT(timer.n_events == 5 && timer.n_left_out == calls - 5, "%lld of %lld events",
           (long long)timer.n_events, (long long)calls);
    op_timer_fini(&timer);
    trainer_fini(&timed);
    trainer_fini(&plain);
}

/* A device that runs behind the host: what lies between two marks takes it TICK_NS, and a wait ends when it
 * is done. */
enum { TICK_NS = 7000, MAX_MARKS = 1 << 16 };

static struct {
    int64_t marks[MAX_MARKS], n_marks, last;
    bool open, waited;
} ticking;

static struct status ticking_open(void *context, int64_t n)
{
    (void)context;
    EXPECT(n <= MAX_MARKS && !ticking.open, "%lld marks", (long long)n);
    ticking.open = true;
    ticking.n_marks = n;
    return status_ok();
}

static void ticking_close(void *context)
{
    (void)context;
    ticking.open = false;
}

static void ticking_mark(void *context, int64_t i)
{
    int64_t now = clock_ns();
    (void)context;
    EXPECT(ticking.open && i >= 0 && i < ticking.n_marks, "mark %lld", (long long)i);
    ticking.last = (ticking.last + TICK_NS > now && i != 0) ? ticking.last + TICK_NS : now;
    ticking.marks[i] = ticking.last;
    ticking.waited = false;
}

static struct status ticking_elapsed(void *context, int64_t from, int64_t to, int64_t *ns)
{
    (void)context;
    EXPECT(ticking.waited, "marks are read before they are passed");
    *ns = ticking.marks[to] - ticking.marks[from];
    return status_ok();
}

static struct status ticking_synchronize(void *context)
{
    (void)context;
    while (clock_ns() < ticking.last) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); /* time: until its own clock says so */
    }
    ticking.waited = true;
    return status_ok();
}

static const struct device_clock ticking_clock = {
    .open = ticking_open, .close = ticking_close, .mark = ticking_mark, .elapsed = ticking_elapsed};

static struct device ticking_device(struct device d)
{
    d.name = "ticking";
    d.clock = &ticking_clock;
    d.synchronize = ticking_synchronize;
    return d;
}

/* More calls than the timer keeps marks for: none is lost. */
static void a_device_with_a_clock_is_asked(void)
{
    enum { N_CALLS = 20000, CAPACITY = 10 };
    struct device device = ticking_device(device_cpu);
    struct exec x = {.device = &device, .ops = ops_cpu(), .layer_index = -1};
    struct op_timer timer;
    float number;
    int64_t ns = 0, calls = 0;
    EXPECT_OK(op_timer_init(&timer, &x, CAPACITY));
    op_timer_attach(&timer);
    for (int i = 0; i < N_CALLS; i++) {
        x.ops->fill(&x, tensor_1d(&number, DTYPE_F32, 1), i);
    }
    op_timer_detach(&timer);
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        calls += timer.totals[i].n_calls;
        ns += timer.totals[i].ns;
    }
    EXPECT(calls == N_CALLS && timer.n_events == CAPACITY && timer.n_left_out == N_CALLS - CAPACITY,
           "%lld calls, %lld events, %lld left out", (long long)calls, (long long)timer.n_events,
           (long long)timer.n_left_out);
    EXPECT(ns >= (int64_t)N_CALLS * TICK_NS, "%lld ns", (long long)ns);
    for (int64_t i = 0; i < CAPACITY; i++) {
        const struct op_event *e = &timer.events[i];
        EXPECT(e->end_ns - e->start_ns >= TICK_NS && (i == 0 || e->start_ns >= e[-1].end_ns), "event %lld",
               (long long)i);
        EXPECT(e->called_ns <= e->returned_ns, "call %lld", (long long)i);
    }
    op_timer_fini(&timer);
    EXPECT(!ticking.open, "the clock is still open");
}

static void bad_windows_are_refused(void)
{
    static const char *const bad[] = {
        "", "x", "3:2", "-1:2", "1:", ":4", "1:2:3", "2;3", "2,", ",3", "1:9223372036854775807"};
    static const char *const good[] = {"0", "5", "0:1", "3:3", "12:400", "2,3", "2,,3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct profile_options o = {.steps = bad[i]};
        EXPECT_ERROR(profile_check(&o), STATUS_USAGE, "--profile_steps");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct profile_options o = {.steps = good[i]};
        EXPECT_OK(profile_check(&o));
    }
}

/* Microseconds with three decimals, as nanoseconds. */
static int64_t ns_of(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    EXPECT(json_is_number(value) && json_number_value(value) >= 0, "no %s", key);
    return llround(json_number_value(value) * 1000);
}

/* No two complete events of a row overlap without one being inside the other. */
static void expect_nesting(const json_t *events)
{
    const json_t *a, *b;
    size_t i, j;
    json_array_foreach(events, i, a)
    {
        for (j = 0; j < i; j++) {
            b = json_array_get(events, j);
            if (!json_equal(json_object_get(a, "tid"), json_object_get(b, "tid")) ||
                json_object_get(a, "ts") == NULL || json_object_get(b, "ts") == NULL) {
                continue;
            }
            int64_t a0 = ns_of(a, "ts"), a1 = a0 + ns_of(a, "dur"), b0 = ns_of(b, "ts"),
                    b1 = b0 + ns_of(b, "dur");
            EXPECT(a1 <= b0 || b1 <= a0 || (a0 >= b0 && a1 <= b1) || (b0 >= a0 && b1 <= a1),
                   "events %zu and %zu cross", j, i);
        }
    }
}

static void expect_op(const json_t *event)
{
    const json_t *args = json_object_get(event, "args");
    EXPECT(is_op(json_string_value(json_object_get(event, "name"))), "unknown op");
    EXPECT(json_number_value(json_object_get(args, "bytes")) > 0, "no bytes");
    EXPECT(json_is_number(json_object_get(args, "flops")) && json_is_string(json_object_get(args, "layer")) &&
               json_is_string(json_object_get(args, "shapes")) &&
               json_is_string(json_object_get(args, "dtype")),
           "arguments are missing");
}

/* A copy of a batch, between two marks of the device; returns its bytes. */
static size_t expect_copy(const json_t *event, bool has_stream)
{
    const json_t *args = json_object_get(event, "args"), *rate = json_object_get(args, "GB/s");
    double bytes = json_number_value(json_object_get(args, "bytes"));
    EXPECT(strcmp(json_string_value(json_object_get(event, "name")), "copy batch") == 0, "another copy");
    EXPECT(json_is_number(rate) && (!has_stream || json_number_value(rate) <= bytes / TICK_NS + 1e-3),
           "%g bytes at %g GB/s", bytes, json_number_value(rate));
    return (size_t)bytes;
}

/* How many rows have this name. */
static int64_t rows_named(const json_t *events, const char *name)
{
    const json_t *event;
    size_t i;
    int64_t n = 0;
    json_array_foreach(events, i, event)
    {
        const char *row = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        n += row != NULL && strcmp(row, name) == 0;
    }
    return n;
}

/* What a trace must show. */
struct expected {
    int64_t n_steps, n_saves, n_copies;
    size_t copied; /* bytes */
    bool has_stream;
};

static void expect_trace(const char *path, struct expected want)
{
    json_t *root;
    const json_t *event;
    size_t i;
    size_t copied = 0;
    int64_t op_ns = 0, step_ns = 0, steps = 0, saves = 0, ops = 0, copies = 0, calls = 0;
    EXPECT_OK(json_read_object(&root, path));
    const json_t *events = json_object_get(root, "traceEvents");
    json_array_foreach(events, i, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));
        const char *kind = json_string_value(json_object_get(event, "ph"));
        const json_t *category = json_object_get(event, "cat");
        EXPECT(name != NULL && kind != NULL && json_object_get(event, "pid") != NULL, "event %zu", i);
        EXPECT(strcmp(kind, "X") == 0 || strcmp(kind, "M") == 0, "event %zu has ph %s", i, kind);
        if (category != NULL && strcmp(json_string_value(category), "op") == 0) {
            expect_op(event);
            op_ns += ns_of(event, "dur");
            ops++;
        } else if (category != NULL && strcmp(json_string_value(category), "copy") == 0) {
            copied += expect_copy(event, want.has_stream);
            op_ns += ns_of(event, "dur");
            copies++;
        } else if (category != NULL && strcmp(json_string_value(category), "call") == 0) {
            calls++;
        } else if (strncmp(name, "micro-step ", 11) == 0) {
            step_ns += ns_of(event, "dur");
            steps++;
        } else if (category != NULL && strcmp(json_string_value(category), "save") == 0) {
            saves++;
        }
    }
    expect_nesting(events);
    EXPECT(calls == (want.has_stream ? ops + copies : 0), "%lld calls of %lld ops", (long long)calls,
           (long long)ops);
    EXPECT(rows_named(events, "stream 0: layers and ops") == want.has_stream &&
               rows_named(events, "host: calls of ops") == want.has_stream &&
               rows_named(events, "layers and ops") == !want.has_stream,
           "other rows");
    EXPECT(steps == want.n_steps && saves == want.n_saves, "%lld micro-steps, %lld saves", (long long)steps,
           (long long)saves);
    EXPECT(copies == want.n_copies && copied == want.copied, "%zu bytes in %lld copies, not %zu", copied,
           (long long)copies, want.copied);
    EXPECT(op_ns > 0 && op_ns <= step_ns, "%lld ns in ops and copies of %lld", (long long)op_ns,
           (long long)step_ns);
    json_decref(root);
}

/* Three steps of two micro-steps, profiled from the second to the fourth. */
static void a_window_becomes_a_trace(const struct batch_step *step, const char *directory)
{
    struct trainer t;
    struct profile p;
    char path[512];
    struct profile_options o = {.enabled = true, .steps = "2:4", .directory = ""};
    init_trainer(&t, step);
    EXPECT_OK(profile_open(&p, &o, directory, &t.net.x));
    t.net.profile = &p;
    for (int64_t i = 1; i <= 3; i++) {
        profile_micro_step(&p);
        profile_phase(&p, "batch");
        take_step(&t, step, i);
        int64_t now = clock_ns();
        profile_save_begun(&p, i);
        if (i == 1) {
            profile_save_ended(&p, now, now + 1000);
        }
    }
    EXPECT(p.x == NULL && t.net.x.ops == ops_cpu(), "ops are still timed behind the window");
    profile_close(&p);
    snprintf(path, sizeof path, "%s/profile/trace_2_4.json", directory);
    expect_trace(path, (struct expected){.n_steps = 3, .n_saves = 2});

    o.steps = "9:12"; /* never reached: nothing is written */
    EXPECT_OK(profile_open(&p, &o, directory, &t.net.x));
    profile_micro_step(&p);
    profile_close(&p);
    o.steps = "1:12"; /* cut short by the end of the run */
    EXPECT_OK(profile_open(&p, &o, directory, &t.net.x));
    profile_micro_step(&p);
    take_step(&t, step, 4);
    profile_close(&p);
    snprintf(path, sizeof path, "%s/profile/trace_1_2.json", directory);
    expect_trace(path, (struct expected){.n_steps = 2});
    o.enabled = false;
    EXPECT_OK(profile_open(&p, &o, "/dev/null/nowhere", &t.net.x));
    profile_micro_step(&p);
    profile_close(&p);
    trainer_fini(&t);
}

/* What the micro-batches of a step take on a device that rounds nothing up. */
static size_t bytes_of(const struct batch_step *step)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < N_MICRO; i++) {
        struct stage_block block;
        struct arena arena = arena_measuring();
        stage_batch_carve(&block, &arena, &text_batch_layout, &step->micro[i]);
        bytes += block.bytes;
    }
    return bytes;
}

/* A device of its own memory, which a watch does not look into, and whose clock is its own or the host's:
 * copies are timed as ops are. */
static void copies_are_shown(const struct batch_step *step, const char *directory, struct device device)
{
    struct trainer_config config = fixture_trainer(&ops_fenced, DTYPE_F32, step->micro[0].limits);
    struct expected want = {.n_steps = N_MICRO,
                            .n_copies = N_MICRO,
                            .copied = bytes_of(step),
                            .has_stream = device.clock != NULL};
    struct trainer t;
    struct profile p;
    char path[512];
    config.net.device = &device;
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(
        profile_open(&p, &(struct profile_options){.enabled = true, .steps = "1:2"}, directory, &t.net.x));
    t.net.profile = &p;
    profile_micro_step(&p);
    take_step(&t, step, 1);
    profile_micro_step(&p);
    profile_close(&p);
    EXPECT(t.net.x.sending == NULL, "copies are still timed behind the window");
    snprintf(path, sizeof path, "%s/profile/trace_1_2.json", directory);
    expect_trace(path, want);
    trainer_fini(&t);
}

int main(void)
{
    char directory[] = "/tmp/kiln_profile_XXXXXX";
    struct batch_step step;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    fixture_step(&step, N_MICRO, 6, LONGEST);
    timed_ops_compute_the_same(&step);
    a_device_with_a_clock_is_asked();
    bad_windows_are_refused();
    copies_are_shown(&step, directory, device_fenced);
    copies_are_shown(&step, directory, ticking_device(device_fenced));
    a_window_becomes_a_trace(&step, directory);
    batch_step_fini(&step);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
