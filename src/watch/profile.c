#include "watch/profile.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"
#include "watch/op_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SAVES = 256 };

static bool parse_steps(const char *text, int64_t *first, int64_t *last)
{
    char *end;
    if (*text < '0' || *text > '9') {
        return false;
    }
    *first = *last = strtoll(text, &end, 10);
    const char *second = end + (*end == ':' ? 1 : strspn(end, ","));
    if (second != end && *second >= '0' && *second <= '9') {
        *last = strtoll(second, &end, 10);
    } else if (*last < 1) {
        *last = 1;
    }
    *first = *first < 1 ? 1 : *first;
    return *end == '\0' && *last >= *first && *last < INT64_MAX;
}

struct status profile_check(const struct profile_options *o)
{
    int64_t first, last;
    return parse_steps(o->steps, &first, &last)
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--profile_steps is '%s', but must be x:y, the first and the last micro-step "
                              "to profile, counted from 1",
                              o->steps);
}

static struct status allocate(struct profile *p)
{
    p->spans = calloc(PROFILE_MAX_SPANS, sizeof *p->spans);
    p->saves = calloc(MAX_SAVES, sizeof *p->saves);
    FAIL_IF(p->spans == NULL || p->saves == NULL, STATUS_MEMORY, "out of memory for the spans of a profile");
    return op_timer_init(&p->timer, p->x, PROFILE_MAX_OPS);
}

static void release(struct profile *p)
{
    free(p->spans);
    free(p->saves);
    op_timer_fini(&p->timer);
    *p = (struct profile){0};
}

struct status profile_open(struct profile *p, const struct profile_options *o, const char *output_dir,
                           struct exec *x)
{
    *p = (struct profile){0};
    if (!o->enabled) {
        return status_ok();
    }
    TRY(profile_check(o));
    parse_steps(o->steps, &p->first, &p->last);
    bool given = o->directory != NULL && *o->directory != '\0';
    int n = snprintf(p->directory, sizeof p->directory, "%s%s", given ? o->directory : output_dir,
                     given ? "" : "/profile");
    FAIL_IF(n >= (int)sizeof p->directory, STATUS_USAGE, "the path of the profile's directory is too long");
    TRY(file_make_directories(p->directory));
    p->rank = o->rank;
    p->x = x;
    struct status s = allocate(p);
    if (failed(s)) {
        release(p);
    }
    return s;
}

/* Ends an open span and appends it to `list`. */
static void end_span(struct profile *p, struct profile_span *span, int64_t end_ns, struct profile_span *list,
                     int64_t *n, int64_t capacity)
{
    if (span->name == NULL) {
        return;
    }
    span->end_ns = end_ns;
    if (*n < capacity) {
        list[(*n)++] = *span;
    } else {
        p->n_left_out++;
    }
    span->name = NULL;
}

static void end_phase(struct profile *p)
{
    end_span(p, &p->phase, clock_ns(), p->spans, &p->n_spans, PROFILE_MAX_SPANS);
}

static void end_step(struct profile *p)
{
    end_phase(p);
    end_span(p, &p->step, clock_ns(), p->spans, &p->n_spans, PROFILE_MAX_SPANS);
}

static void end_save(struct profile *p, int64_t end_ns)
{
    end_span(p, &p->save, end_ns, p->saves, &p->n_saves, MAX_SAVES);
}

static double seconds_of_steps(const struct profile *p)
{
    int64_t ns = 0;
    for (int64_t i = 0; i < p->n_spans; i++) {
        ns += p->spans[i].number >= 0 ? p->spans[i].end_ns - p->spans[i].start_ns : 0;
    }
    return (double)ns * 1e-9;
}

static void log_table(const struct profile *p)
{
    struct buf b = {0};
    op_report_append(&b, p->timer.totals, seconds_of_steps(p), NULL);
    if (!b.failed && b.n > 0) {
        log_info("%.*s", (int)b.n - 1, b.data); /* without the last newline */
    }
    buf_fini(&b);
}

/* ---- the trace ----
 *
 * A file in the Chrome trace event format (object form), which Perfetto and chrome://tracing show.  Rows:
 * micro-steps with their phases, layers with their ops, and the background save; times in microseconds from
 * the beginning of the window.  Source: "Trace Event Format", Google,
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. */

/* Threads of the trace.  On a device whose calls return before their work is done, the host's calls have
 * their own row. */
enum row { ROW_PHASES = 1, ROW_CALLS, ROW_OPS, ROW_SAVE, N_ROWS = ROW_SAVE };

static const char *const row_names[2][N_ROWS + 1] = {
    {NULL, "micro-steps and phases", NULL, "layers and ops", "background save"},
    {NULL, "host: micro-steps and phases", "host: calls of ops", "stream 0: layers and ops",
     "host: background save"}};

struct trace {
    struct buf text;
    int64_t from_ns, to_ns; /* the window */
    bool any;               /* an event has been written */
    bool has_stream;        /* ops were timed by the device's clock */
};

static void begin_event(struct trace *t)
{
    buf_puts(&t->text, t->any ? ",\n" : "\n");
    t->any = true;
}

static void put_names(struct trace *t)
{
    begin_event(t);
    buf_printf(&t->text, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"kiln\"}}");
    for (int row = 1; row <= N_ROWS; row++) {
        if (row_names[t->has_stream][row] == NULL) {
            continue;
        }
        begin_event(t);
        buf_printf(
            &t->text,
            "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}},\n"
            "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}",
            row, row_names[t->has_stream][row], row, row);
    }
}

static int64_t clip(const struct trace *t, int64_t ns)
{
    return ns < t->from_ns ? t->from_ns : ns > t->to_ns ? t->to_ns : ns;
}

/* A complete event without its arguments; "}" ends it. */
static void begin_span(struct trace *t, enum row row, const char *category, const char *name, int64_t number,
                       int64_t start_ns, int64_t end_ns)
{
    int64_t start = clip(t, start_ns) - t->from_ns, duration = clip(t, end_ns) - t->from_ns - start;
    char suffix[24] = "";
    if (number >= 0) {
        snprintf(suffix, sizeof suffix, " %" PRId64, number);
    }
    begin_event(t);
    buf_printf(&t->text,
               "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%" PRId64 ".%03d,\"dur\":%" PRId64
               ".%03d,\"cat\":\"%s\",\"name\":\"%s%s\"",
               row, start / 1000, (int)(start % 1000), duration / 1000, (int)(duration % 1000), category,
               name, suffix);
}

/* Micro-steps first: viewers want an enclosing span before those inside it. */
static void put_spans(struct trace *t, enum row row, const char *category, const struct profile_span *spans,
                      int64_t n)
{
    for (int64_t k = 0; k < 2 * n; k++) {
        const struct profile_span *s = &spans[k % n];
        if ((s->number >= 0) == (k < n)) {
            begin_span(t, row, category, s->name, s->number, s->start_ns, s->end_ns);
            buf_putc(&t->text, '}');
        }
    }
}

static void put_shapes(struct buf *b, const struct op_event *e)
{
    for (int i = 0; i < e->call.n_shapes; i++) {
        const struct op_shape *s = &e->call.shapes[i];
        buf_printf(b, "%s%s [", i == 0 ? "" : ", ", dtype_name(s->dtype));
        for (int d = 0; d < s->n_dims; d++) {
            buf_printf(b, "%s%" PRId64, d == 0 ? "" : ", ", s->dims[d]);
        }
        buf_putc(b, ']');
    }
}

static const char *layer_of(const struct op_event *e)
{
    return e->layer == NULL ? "no layer" : e->layer;
}

static bool is_copy(const struct op_event *e)
{
    return e->call.slot == OP_TIMER_COPY;
}

/* Only micro-batches are sent, so a copy is a batch's. */
static const char *name_of(const struct op_event *e)
{
    return is_copy(e) ? "copy batch" : op_watch_name(e->call.slot);
}

static double ns_of(const struct op_event *e)
{
    return e->end_ns > e->start_ns ? (double)(e->end_ns - e->start_ns) : 1;
}

static void put_copy(struct trace *t, const struct op_event *e)
{
    begin_span(t, ROW_OPS, "copy", name_of(e), -1, e->start_ns, e->end_ns);
    buf_printf(&t->text, ",\"args\":{\"bytes\":%.0f,\"GB/s\":%.3f}}", e->call.bytes,
               e->call.bytes / ns_of(e));
}

static void put_op(struct trace *t, const struct op_event *e)
{
    double ns = ns_of(e);
    const struct op_call *c = &e->call;
    struct buf *b = &t->text;
    begin_span(t, ROW_OPS, "op", name_of(e), -1, e->start_ns, e->end_ns);
    buf_printf(b, ",\"args\":{\"layer\":\"%s", layer_of(e));
    if (e->layer_index >= 0) {
        buf_printf(b, " %" PRId64, e->layer_index);
    }
    buf_printf(b, "\",\"dtype\":\"%s\",\"shapes\":\"",
               c->n_shapes == 0 ? "" : dtype_name(c->shapes[c->n_shapes - 1].dtype));
    put_shapes(b, e);
    buf_printf(b, "\",\"bytes\":%.0f,\"flops\":%.0f,\"GB/s\":%.3f,\"GF/s\":%.3f}}", c->bytes, c->flops,
               c->bytes / ns, c->flops / ns);
}

static bool same_layer(const struct op_event *a, const struct op_event *b)
{
    return !is_copy(b) && strcmp(layer_of(a), layer_of(b)) == 0 && a->layer_index == b->layer_index;
}

/* Consecutive calls of one layer go inside a span with its name, unless a phase ends between them; copies are
 * not part of it. */
static void put_ops(struct trace *t, const struct profile *p)
{
    int64_t n = p->timer.n_events, span = 0;
    const struct op_event *events = p->timer.events;
    for (int64_t i = 0, end; i < n; i = end) {
        if (is_copy(&events[i])) {
            put_copy(t, &events[i]);
            end = i + 1;
            continue;
        }
        while (!t->has_stream && span < p->n_spans && p->spans[span].end_ns <= events[i].start_ns) {
            span++;
        }
        int64_t until = !t->has_stream && span < p->n_spans ? p->spans[span].end_ns : INT64_MAX;
        for (end = i + 1; end < n && same_layer(&events[i], &events[end]) && events[end].start_ns < until;) {
            end++;
        }
        begin_span(t, ROW_OPS, "layer", layer_of(&events[i]), events[i].layer_index, events[i].start_ns,
                   events[end - 1].end_ns);
        buf_putc(&t->text, '}');
        for (int64_t k = i; k < end; k++) {
            put_op(t, &events[k]);
        }
    }
}

/* When the host called each op, and queued each copy. */
static void put_calls(struct trace *t, const struct profile *p)
{
    for (int64_t i = 0; t->has_stream && i < p->timer.n_events; i++) {
        const struct op_event *e = &p->timer.events[i];
        begin_span(t, ROW_CALLS, "call", name_of(e), -1, e->called_ns, e->returned_ns);
        buf_putc(&t->text, '}');
    }
}

static struct status profile_trace_write(const struct profile *p, const char *path)
{
    struct trace t = {.from_ns = INT64_MAX, .has_stream = p->x->device->clock != NULL};
    for (int64_t i = 0; i < p->n_spans; i++) {
        t.from_ns = p->spans[i].start_ns < t.from_ns ? p->spans[i].start_ns : t.from_ns;
        t.to_ns = p->spans[i].end_ns > t.to_ns ? p->spans[i].end_ns : t.to_ns;
    }
    buf_puts(&t.text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    put_names(&t);
    put_spans(&t, ROW_PHASES, "phase", p->spans, p->n_spans);
    put_calls(&t, p);
    put_ops(&t, p);
    put_spans(&t, ROW_SAVE, "save", p->saves, p->n_saves);
    buf_printf(&t.text,
               "\n],\n\"otherData\":{\"program\":\"kiln %s\",\"device\":\"%s\",\"first_micro_step\":%" PRId64
               ",\"last_micro_step\":%" PRId64 ",\"left_out\":%" PRId64 "}}\n",
               KILN_VERSION, p->x->device->name, p->first, p->micro_step,
               p->n_left_out + p->timer.n_left_out);
    struct status s = buf_status(&t.text);
    if (!failed(s)) {
        s = file_write_atomic(path, t.text.data, t.text.n);
    }
    buf_fini(&t.text);
    return s;
}

/* ---- the window ---- */

/* The window is over: writes the trace, logs the table, and stops timing. */
static void end_window(struct profile *p)
{
    char path[PROFILE_PATH_BYTES + 64], suffix[24];
    op_timer_detach(&p->timer); /* waits for the device: its work is part of the step */
    end_step(p);
    end_save(p, clock_ns()); /* a save still in progress is shown up to here */
    snprintf(suffix, sizeof suffix, "_rank_%d", p->rank);
    snprintf(path, sizeof path, "%s/trace_%" PRId64 "_%" PRId64 "%s.json", p->directory, p->first,
             p->micro_step, p->rank > 0 ? suffix : "");
    struct status s = profile_trace_write(p, path);
    if (failed(s)) {
        log_warning("%s; training continues without a trace", s.message);
    } else {
        log_info("profile: wrote %s; open it in https://ui.perfetto.dev or chrome://tracing", path);
    }
    log_table(p);
    release(p);
}

void profile_close(struct profile *p)
{
    if (p->x == NULL) {
        return;
    }
    if (p->recording) {
        end_window(p);
    } else {
        log_warning("nothing was profiled: the run ended after micro-step %" PRId64
                    ", before number %" PRId64,
                    p->micro_step, p->first);
        release(p);
    }
}

void profile_micro_step(struct profile *p)
{
    if (p == NULL || p->x == NULL) {
        return;
    }
    if (p->micro_step == p->last) {
        end_window(p);
        return;
    }
    end_step(p);
    p->micro_step++;
    if (p->micro_step == p->first) {
        p->recording = true;
        op_timer_attach(&p->timer);
    }
    if (p->recording) {
        p->step = (struct profile_span){"micro-step", p->micro_step, clock_ns(), 0};
    }
}

void profile_phase(struct profile *p, const char *name)
{
    if (p == NULL || !p->recording) {
        return;
    }
    end_phase(p);
    p->phase = (struct profile_span){name, -1, clock_ns(), 0};
}

void profile_save_begun(struct profile *p, int64_t step)
{
    if (p != NULL && p->x != NULL) {
        p->save = (struct profile_span){"write the checkpoint of step", step, clock_ns(), 0};
    }
}

void profile_save_ended(struct profile *p, int64_t start_ns, int64_t end_ns)
{
    if (p != NULL && p->recording) {
        p->save.start_ns = start_ns;
        end_save(p, end_ns);
    } else if (p != NULL) {
        p->save.name = NULL;
    }
}
