/* Tables around tables: a device that fails behind the host's back is named with its op and layer, exactly
 * where every op is waited for, else as a range; the log of kernels counts every call once and says what
 * served it. */
#define _GNU_SOURCE
#include "bert_fixture.h"

#include "core/buf.h"
#include "io/file.h"
#include "ops/op_timer.h"
#include "ops/op_watch.h"
#include "watch/migration_log.h"

#include <unistd.h>

enum { LONGEST = 14, N_MICRO = 2 };

/* A device on which op number `bad` of those that are queued fails, which a wait tells. */
static struct {
    struct op_watch table;
    int64_t n_queued, bad, n_alone;
    const char *op, *layer; /* of the bad one */
    int64_t layer_index;
} faulty;

static void faulty_after(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)w;
    exec_queued(x, op_watch_name(call->slot));
    if (faulty.n_queued++ == faulty.bad) {
        faulty.op = op_watch_name(call->slot);
        faulty.layer = x->layer;
        faulty.layer_index = x->layer_index;
    }
}

static struct status faulty_wait(void *context)
{
    (void)context;
    return faulty.n_queued > faulty.bad ? status_error(STATUS_INTERNAL, "an illegal address") : status_ok();
}

static struct status faulty_copy(void *context, void *to, const void *from, size_t bytes)
{
    memmove(to, from, bytes);
    return faulty_wait(context);
}

static struct device faulty_device(void)
{
    struct device d = device_cpu;
    d.name = "faulty";
    d.copy_in = d.copy_out = faulty_copy;
    d.synchronize = faulty_wait;
    return d;
}

/* A step whose op number `bad` fails; the message is checked against what the device saw. */
static void fail_at(const struct batch_step *step, int64_t bad, bool waits)
{
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
    struct device device = faulty_device();
    struct op_watch sync;
    struct trainer t;
    struct trainer_result r;
    char place[128];
    faulty.n_queued = 0;
    faulty.bad = INT64_MAX;
    op_watch_init(&faulty.table, ops_cpu());
    faulty.table.after = faulty_after;
    config.net.device = &device;
    config.net.ops = &faulty.table.table;
    if (waits) {
        op_sync_init(&sync, config.net.ops);
        config.net.ops = &sync.table;
    }
    EXPECT_OK(trainer_init(&t, &config));
    faulty.n_queued = 0;
    faulty.bad = bad;
    struct status s = trainer_step(&t, step, 1, 1, 1e-3, &r);
    exec_synchronize(&t.net.x); /* what was queued last is waited for in the next step */
    s = failed(s) ? s : t.net.x.status;
    char index[24] = "";
    if (faulty.layer_index >= 0) {
        snprintf(index, sizeof index, " %lld", (long long)faulty.layer_index);
    }
    snprintf(place, sizeof place, "%s in %s%s on faulty: an illegal address", faulty.op, faulty.layer, index);
    bool is_alone = strstr(s.message, place) != NULL; /* in the window */
    EXPECT_ERROR(s, STATUS_INTERNAL,
                 waits || is_alone ? place : "an illegal address; it belongs to an op from ");
    EXPECT(waits || is_alone || strstr(s.message, "--sync_ops") != NULL, "'%s' tells no way on", s.message);
    faulty.n_alone += is_alone;
    trainer_fini(&t);
}

static void errors_are_named(const struct batch_step *step)
{
    for (int64_t bad = 0; bad < 60; bad += 7) {
        fail_at(step, bad, true);
        fail_at(step, bad, false);
    }
    EXPECT(faulty.n_alone < 2 * 9, "no failure was found late");
}

/* A table whose products say who served them, two ways. */
static void count_after(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    int64_t *calls = (int64_t *)(w + 1);
    if (strcmp(op_watch_name(call->slot), "linear") == 0 && ++*calls % 2 == 0) {
        x->served_by = "the other library";
        x->served_why = "every second call";
    }
}

static int64_t count_in(const char *text, const char *part)
{
    int64_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        n++;
    }
    return n;
}

/* Sum of the numbers before " calls of". */
static int64_t calls_in(const char *text)
{
    int64_t n = 0;
    for (const char *at = text; (at = strstr(at, "[context]: ")) != NULL; at++) {
        n += strtoll(at + strlen("[context]: "), NULL, 10);
    }
    return n;
}

static void kernels_are_listed(const struct batch_step *step, const char *directory)
{
    struct {
        struct op_watch watch;
        int64_t calls;
    } half = {0};
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_BF16, step->micro[0].limits);
    struct backend b = {&device_cpu, &half.watch.table};
    struct migration_log log;
    struct op_timer timer;
    struct trainer plain, logged;
    struct trainer_result r;
    struct file_map map;
    char path[256];
    op_watch_init(&half.watch, ops_cpu());
    half.watch.after = count_after;
    snprintf(path, sizeof path, "%s/migration.log", directory);
    EXPECT_OK(trainer_init(&plain, &config));
    EXPECT_OK(trainer_step(&plain, step, 1, 1, 1e-3, &r));
    EXPECT_OK(migration_log_open(&log, path, "test", &b));
    config.net.ops = b.ops;
    EXPECT_OK(trainer_init(&logged, &config));
    EXPECT_OK(op_timer_init(&timer, &logged.net.x, 0));
    op_timer_attach(&timer); /* tables around tables around tables */
    EXPECT_OK(trainer_step(&logged, step, 1, 1, 1e-3, &r));
    op_timer_detach(&timer);
    EXPECT(memcmp(plain.net.master.data, logged.net.master.data, tensor_bytes(plain.net.master)) == 0,
           "other weights");
    int64_t timed = 0;
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        timed += timer.totals[i].n_calls;
    }
    op_timer_fini(&timer);
    migration_log_close(&log, status_error(STATUS_PREEMPTED, "stopped by a signal"));

    EXPECT_OK(file_map_open(&map, path));
    struct buf text = {0};
    buf_append(&text, map.data, map.n);
    file_map_close(&map);
    puts(buf_text(&text));
    EXPECT(calls_in(text.data) == timed + 1, "%lld calls in the log, %lld timed, and the first cast",
           (long long)calls_in(text.data), (long long)timed);
    EXPECT(strstr(text.data, "run        kiln test, stopped by a signal\n") != NULL, "how it ended");
    EXPECT(strstr(text.data, "[cpu_match]: cast(bf16 [") != NULL, "the cast of the first weights");
    EXPECT(count_in(text.data, "[cpu_match]: linear(") > 0 &&
               count_in(text.data, "[cpu_match]: linear(") == count_in(text.data, "[cpu_modified]: linear("),
           "products are half of each");
    EXPECT(strstr(text.data, " --> the other library: every second call\n") != NULL, "why");
    EXPECT(count_in(text.data, "_match]: layernorm(") == 1 && count_in(text.data, " --> own kernel, ") > 5,
           "own kernels");
    buf_fini(&text);
    trainer_fini(&logged);
    trainer_fini(&plain);
}

static void a_full_log_counts_on(const char *directory)
{
    struct backend b = {&device_cpu, ops_cpu()};
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    struct migration_log log;
    static float numbers[MIGRATION_LOG_ENTRIES + 10];
    char path[256];
    snprintf(path, sizeof path, "%s/nowhere/migration.log", directory);
    EXPECT_ERROR(migration_log_open(&log, path, "test", &b), STATUS_IO, "migration.log");
    EXPECT(b.ops == ops_cpu(), "a log that did not open stands around the table");
    EXPECT_OK(migration_log_open(&log, NULL, "test", &b));
    EXPECT(b.ops == ops_cpu(), "a log that is off stands around the table");
    migration_log_close(&log, status_ok());
    snprintf(path, sizeof path, "%s/full.log", directory);
    EXPECT_OK(migration_log_open(&log, path, "test", &b));
    x.ops = b.ops;
    for (int64_t round = 0; round < 2; round++) {
        for (int64_t n = 1; n <= MIGRATION_LOG_ENTRIES + 10; n++) {
            x.ops->fill(&x, tensor_1d(numbers, DTYPE_F32, n), 1);
        }
    }
    EXPECT_OK(x.status);
    EXPECT(log.n_entries == MIGRATION_LOG_ENTRIES && log.n_left_out == 20, "%lld entries, %lld left out",
           (long long)log.n_entries, (long long)log.n_left_out);
    for (int64_t i = 0; i < log.n_entries; i++) {
        EXPECT(log.entries[i].n_calls == 2, "entry %lld", (long long)i);
    }
    migration_log_close(&log, status_ok());
}

int main(void)
{
    char directory[] = "/tmp/kiln_watch_XXXXXX";
    struct batch_step step;
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    fixture_step(&step, N_MICRO, 6, LONGEST);
    errors_are_named(&step);
    kernels_are_listed(&step, directory);
    a_full_log_counts_on(directory);
    batch_step_fini(&step);
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
