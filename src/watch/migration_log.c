#include "watch/migration_log.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/log.h"
#include "io/file.h"
#include "ops/plain_ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_shapes(const struct op_call *a, const struct op_call *b)
{
    return a->slot == b->slot && a->n_shapes == b->n_shapes &&
           memcmp(a->shapes, b->shapes, sizeof a->shapes) == 0;
}

/* The hash slot of the entry for this op, shapes and kernel; if there is none, the free slot where it
 * goes. */
static int16_t *place_of(struct migration_log *log, const struct op_call *call, const struct exec *x)
{
    uint64_t hash = hash_fnv1a(call->shapes, sizeof call->shapes) + (uint64_t)call->slot * 2654435761U;
    for (;; hash++) {
        int16_t *place = &log->places[hash % MIGRATION_LOG_PLACES];
        const struct migration_entry *e = &log->entries[*place - 1];
        if (*place == 0 || (same_shapes(&e->call, call) && same_text(e->by, x->served_by) &&
                            same_text(e->why, x->served_why))) {
            return place;
        }
    }
}

static void after_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    struct migration_log *log = (struct migration_log *)w;
    if (failed(x->status)) {
        return;
    }
    int16_t *place = place_of(log, call, x);
    if (*place == 0 && log->n_entries == MIGRATION_LOG_ENTRIES) {
        log->n_left_out++;
        return;
    }
    if (*place == 0) {
        log->entries[log->n_entries++] =
            (struct migration_entry){*call,   x->served_by, x->served_why,  x->layer, x->layer_index,
                                     x->file, x->line,      clock_wall_s(), 0};
        *place = (int16_t)log->n_entries;
    }
    log->entries[*place - 1].n_calls++;
}

static void put_time(struct buf *b, double seconds)
{
    char text[32] = "";
    time_t t = (time_t)seconds;
    struct tm parts;
    if (localtime_r(&t, &parts) != NULL) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    }
    buf_puts(b, text);
}

/* "linear(fp32 [64, 128], ...)" */
static void put_call(struct buf *b, const struct op_call *c)
{
    buf_printf(b, "%s(", op_watch_name(c->slot));
    for (int i = 0; i < c->n_shapes; i++) {
        const struct op_shape *s = &c->shapes[i];
        buf_printf(b, "%s%s [", i == 0 ? "" : ", ", dtype_name(s->dtype));
        for (int d = 0; d < s->n_dims; d++) {
            buf_printf(b, "%s%" PRId64, d == 0 ? "" : ", ", s->dims[d]);
        }
        buf_putc(b, ']');
    }
    buf_putc(b, ')');
}

/* "src/train/trainer.c:172", whatever directory the build was in. */
static void put_place(struct buf *b, const char *file, int line)
{
    const char *room = file == NULL ? NULL : strstr(file, "src/");
    for (const char *next = room; next != NULL; next = strstr(next + 1, "/src/")) {
        room = *next == '/' ? next + 1 : next;
    }
    if (file == NULL) {
        buf_puts(b, "before any layer");
    } else {
        buf_printf(b, "%s:%d", room == NULL ? file : room, line);
    }
}

static enum migration_tag tag_of(const struct migration_log *log, const struct migration_entry *e)
{
    bool elsewhere = e->by == plain_ops_served_by && !log->on.device->is_host;
    return e->why == NULL ? MIGRATION_MATCH : elsewhere ? MIGRATION_MISMATCH : MIGRATION_MODIFIED;
}

static void put_entry(struct buf *b, const struct migration_log *log, const struct migration_entry *e)
{
    static const char *const tags[] = {
        [MIGRATION_MATCH] = "match", [MIGRATION_MODIFIED] = "modified", [MIGRATION_MISMATCH] = "mismatch"};
    buf_putc(b, '[');
    put_time(b, e->first_s);
    buf_puts(b, "] ");
    put_place(b, e->file, e->line);
    buf_printf(b, "\n    [context]: %" PRId64 " call%s of %.3g GFLOP and %.3g MB", e->n_calls,
               e->n_calls == 1 ? "" : "s", e->call.flops * 1e-9, e->call.bytes * 1e-6);
    if (e->layer != NULL) {
        buf_printf(b, ", first in %s", e->layer);
    }
    if (e->layer != NULL && e->layer_index >= 0) {
        buf_printf(b, " %" PRId64, e->layer_index);
    }
    buf_printf(b, "\n    [%s_%s]: ", log->on.device->name, tags[tag_of(log, e)]);
    put_call(b, &e->call);
    if (e->by != NULL) {
        buf_printf(b, " --> %s", e->by);
    } else {
        buf_printf(b, " --> own kernel, %s", log->on.device->is_host ? ops_cpu_isa() : log->on.ops->name);
    }
    buf_printf(b, "%s%s\n\n", e->why == NULL ? "" : ": ", e->why == NULL ? "" : e->why);
}

static void put_head(struct buf *b, const struct migration_log *log, const char *state)
{
    int64_t n[MIGRATION_MISMATCH + 1] = {0};
    for (int64_t i = 0; i < log->n_entries; i++) {
        n[tag_of(log, &log->entries[i])]++;
    }
    buf_printf(b,
               "kiln %s migration log: the kernel that served each op\nrun        kiln %s, %s\nwritten    ",
               KILN_VERSION, log->command, state);
    put_time(b, clock_wall_s());
    buf_putc(b, '\n');
    backend_describe(b, &log->on);
    buf_printf(b, "entries    %" PRId64 ": %" PRId64 " match, %" PRId64 " modified, %" PRId64 " mismatch\n",
               log->n_entries, n[MIGRATION_MATCH], n[MIGRATION_MODIFIED], n[MIGRATION_MISMATCH]);
    if (log->level > MIGRATION_MATCH) {
        buf_printf(b, "level      %d: %s\n", log->level,
                   log->level == MIGRATION_MODIFIED ? "modified and mismatch only" : "mismatch only");
    }
    if (log->n_left_out > 0) {
        buf_printf(b, "left out   %" PRId64 " calls of other shapes, beyond %d entries\n", log->n_left_out,
                   MIGRATION_LOG_ENTRIES);
    }
    buf_putc(b, '\n');
}

static struct status write_log(const struct migration_log *log, const char *state)
{
    struct buf b = {0};
    put_head(&b, log, state);
    for (int64_t i = 0; i < log->n_entries; i++) {
        if (tag_of(log, &log->entries[i]) >= log->level) {
            put_entry(&b, log, &log->entries[i]);
        }
    }
    struct status s = buf_status(&b);
    if (!failed(s)) {
        s = file_write_atomic(log->path, b.data, b.n);
    }
    buf_fini(&b);
    return status_context(s, "--migration-log");
}

static void release(struct migration_log *log)
{
    free(log->entries);
    free(log->places);
    *log = (struct migration_log){0};
}

/* Writes the head, which shows that a run has started.  A pipe gets the log only at the end: its reader would
 * take the head for all of it. */
static struct status begin_file(const struct migration_log *log)
{
    char target[FILE_PATH_BYTES];
    bool in_place;
    struct status s = file_find_target(target, log->path, &in_place);
    if (!failed(s) && in_place) {
        s = file_check_output(log->path, 0);
    }
    return failed(s) || in_place ? status_context(s, "--migration-log") : write_log(log, "under way");
}

struct status migration_log_open(struct migration_log *log, const char *path, const char *command,
                                 struct backend *b)
{
    *log = (struct migration_log){.path = path, .command = command, .on = *b, .level = MIGRATION_MATCH};
    if (path == NULL) {
        return status_ok();
    }
    log->entries = calloc(MIGRATION_LOG_ENTRIES, sizeof *log->entries);
    log->places = calloc(MIGRATION_LOG_PLACES, sizeof *log->places);
    struct status s = log->entries == NULL || log->places == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for a migration log")
                          : begin_file(log);
    if (failed(s)) {
        release(log);
        return s;
    }
    op_watch_init(&log->watch, b->ops);
    log->watch.after = after_call;
    b->ops = &log->watch.table;
    return status_ok();
}

void migration_log_close(struct migration_log *log, struct status outcome)
{
    if (log->path == NULL) {
        return;
    }
    struct status s = write_log(log, failed(outcome) ? outcome.message : "complete");
    if (failed(s)) {
        log_warning("%s", s.message);
    } else {
        log_info("wrote %s: %" PRId64 " ops by dtype and shape", log->path, log->n_entries);
    }
    release(log);
}
