#include "watch/profile.h"

#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"
#include "watch/op_report.h"
#include "watch/profile_trace.h"

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
    if (p->spans == NULL || p->saves == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the spans of a profile");
    }
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
    if (n >= (int)sizeof p->directory) {
        return status_error(STATUS_USAGE, "the path of the profile's directory is too long");
    }
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
