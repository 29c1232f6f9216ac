#include "service/call.h"

#include "core/clock.h"
#include "core/entropy.h"
#include "service/service.h"
#include "text/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void call_free(struct call *c)
{
    if (c->free_state != NULL) {
        c->free_state(c->state);
    }
    json_decref(c->body);
    free(c);
}

static const char type_json[] = "application/json";

/* ---- answers ---- */

/* The text of JSON, which is taken over; false: memory ran out. */
static bool write_json(struct buf *out, json_t *json)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(json);
    if (text != NULL) {
        buf_puts(out, text);
    }
    free(text);
    return text != NULL && !out->failed;
}

static void reply_json(struct call *c, int status, json_t *json)
{
    struct buf body = {0};
    if (write_json(&body, json)) {
        http_reply(c->x, status, type_json, &body);
    } else {
        buf_fini(&body);
        http_reply(c->x, 500, NULL, NULL);
    }
}

void call_reply(struct call *c, json_t *json)
{
    reply_json(c, 200, json);
}

void call_reply_text(struct call *c, int status, const char *content_type, struct buf *text)
{
    if (text->failed) {
        buf_fini(text);
        http_reply(c->x, 500, NULL, NULL);
    } else {
        http_reply(c->x, status, content_type, text);
    }
}

/* Some clients end a line at U+0085, U+2028 and U+2029 too (Python's splitlines), inside of strings. */
static void append_without_lines(struct buf *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        const unsigned char *u = (const unsigned char *)p;
        if (u[0] == 0xC2 && u[1] == 0x85) {
            buf_puts(out, "\\u0085");
            p += 1;
        } else if (u[0] == 0xE2 && u[1] == 0x80 && (u[2] == 0xA8 || u[2] == 0xA9)) {
            buf_puts(out, u[2] == 0xA8 ? "\\u2028" : "\\u2029");
            p += 2;
        } else {
            buf_putc(out, *p);
        }
    }
}

void call_stream_begin(struct call *c, enum call_stream kind)
{
    if (!c->is_streaming) {
        http_add_header(c->x, "Cache-Control", "no-cache");
        http_add_header(c->x, "X-Accel-Buffering", "no"); /* nginx passes it on as it comes */
        http_stream_begin(c->x, 200, kind == CALL_EVENTS ? "text/event-stream" : "application/x-ndjson");
        c->is_streaming = true;
        c->stream = kind;
    }
}

void call_stream_json(struct call *c, enum call_stream kind, json_t *json)
{
    struct buf text = {0}, event = {0};
    bool written = write_json(&text, json);
    call_stream_begin(c, kind);
    buf_puts(&event, kind == CALL_EVENTS ? "data: " : "");
    append_without_lines(&event, buf_text(&text));
    buf_puts(&event, kind == CALL_EVENTS ? "\n\n" : "\n");
    if (written && !event.failed) {
        http_stream_write(c->x, event.data, event.n);
    }
    buf_fini(&event);
    buf_fini(&text);
}

void call_stream_done(struct call *c)
{
    static const char done[] = "data: [DONE]\n\n";
    call_stream_begin(c, CALL_EVENTS);
    http_stream_write(c->x, done, sizeof done - 1);
}

void call_stream_end(struct call *c, bool is_whole)
{
    http_stream_end(c->x, is_whole);
}

/* ---- failures ---- */

static void fail(struct call *c, int status, const char *param, const char *message)
{
    json_t *error = c->dialect->error(status, message, param);
    if (c->is_streaming) {
        call_stream_json(c, c->stream, error);
        call_stream_end(c, true);
    } else {
        reply_json(c, status, error);
    }
}

void call_fail(struct call *c, int status, const char *param, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fail(c, status, param, message);
}

void call_fail_status(struct call *c, const char *param, struct status s)
{
    bool asked = s.code == STATUS_USAGE || s.code == STATUS_DATA;
    bool later = s.code == STATUS_MEMORY || s.code == STATUS_UNAVAILABLE;
    fail(c, asked ? c->dialect->invalid : later ? 503 : 500, param, s.message);
}

void call_fail_work(struct call *c, struct status s)
{
    if (c->work.timed_out) {
        call_fail(c, 504, NULL,
                  "the answer took longer than %g s: ask for less, or give it more time "
                  "(--request_timeout_s, Request-Timeout)",
                  (double)(c->work.deadline_ns - http_began_ns(c->x)) / 1e9);
    } else {
        call_fail_status(c, NULL, s);
    }
}

/* ---- models ---- */

/* Names of all models, for messages. */
static void list_models(struct buf *out, const struct served_models *set)
{
    for (int i = 0; i < set->n; i++) {
        buf_printf(out, "%s%s", i == 0 ? "" : ", ", set->models[i].name);
    }
}

bool call_can_work(struct call *c)
{
    if (c->drains || c->models == NULL) {
        http_add_header(c->x, "Retry-After", c->drains ? "30" : "5");
        call_fail(c, 503, NULL, c->drains ? "the server is ending" : "the model is being loaded");
        return false;
    }
    return true;
}

static bool is_any(const char *name)
{
    return name == NULL || name[0] == '\0' || strcmp(name, "dummy") == 0;
}

/* The model that is named, by the path or by `name`, or `otherwise`; NULL: it has failed the call. */
static struct served_model *find_model(struct call *c, const char *name, struct served_model *otherwise)
{
    struct served_model *m = c->named;
    if (m == NULL) {
        m = is_any(name) ? otherwise : served_models_find(c->models, name);
    }
    if (m == NULL) {
        struct buf names = {0};
        list_models(&names, c->models);
        call_fail(c, 404, "model", "the model %.200s does not exist; this server has: %s",
                  name == NULL ? "" : name, names.n == 0 ? "none" : buf_text(&names));
        buf_fini(&names);
    }
    c->model = m;
    return m;
}

/* The first model of a set; NULL: runs are watched, and no model is served. */
static struct served_model *first_of(struct served_models *set)
{
    return set->n == 0 ? NULL : &set->models[0];
}

struct served_model *call_any_model(struct call *c, const char *name)
{
    return call_can_work(c) ? find_model(c, name, first_of(c->models)) : NULL;
}

struct served_model *call_model(struct call *c, const char *name, enum answer a)
{
    if (!call_can_work(c)) {
        return NULL;
    }
    struct served_model *first = served_models_first(c->models, a);
    struct served_model *m = find_model(c, name, first == NULL ? first_of(c->models) : first);
    if (m != NULL && m->lanes[a] == NULL) {
        call_fail(c, c->dialect->wrong_model, "model", "the model %s cannot do this: %s", m->name,
                  m->why_not[a].message);
        return NULL;
    }
    return m;
}

/* ---- work ---- */

static bool is_wanted(void *self)
{
    const struct call *c = self;
    return !http_has_left(c->x);
}

/* Tokens that were generated, for a client that has left too. */
static void count_new_tokens(struct call *c)
{
    for (int64_t i = 0; i < c->work.n_generations; i++) {
        const struct generation *g = c->work.generations[i];
        c->n_new_tokens += (int64_t)(g->ids.n - g->n_prompt);
    }
}

/* Runs in a thread of the server. */
static void finish(void *self)
{
    struct call *c = self;
    c->has_timing = true;
    count_new_tokens(c);
    if (failed(c->status)) {
        call_fail_work(c, c->status);
    } else {
        c->finish(c);
    }
}

/* Runs in the engine's thread. */
static void done(void *self, struct status s)
{
    struct call *c = self;
    c->status = s;
    http_call(c->x, finish, c);
}

/* The server's limit, or less if the client waits less long. */
static double seconds_for(const struct call *c)
{
    double most = c->service->options.request_timeout_s;
    const char *given = http_header(c->x, "Request-Timeout");
    double seconds = given == NULL ? most : strtod(given, NULL);
    return seconds > 0 && seconds < most ? seconds : most;
}

static void fail_full(struct call *c, double retry_after_s)
{
    enum { MOST_S = 120 }; /* beyond it, OpenAI's client does not try again */
    const struct text_engine_load load = text_engine_load(c->models->engine);
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%d", (int)fmin(fmax(ceil(retry_after_s), 1), MOST_S));
    http_add_header(c->x, "Retry-After", seconds);
    call_fail(c, 429, NULL,
              "the queue is full: %lld requests with %lld tokens are waiting (--max_concurrent_requests, "
              "--max_queue_tokens), and this one has %lld",
              (long long)load.n_works, (long long)load.n_tokens, (long long)c->work.n_tokens);
}

void call_submit(struct call *c, void (*finish_call)(struct call *c))
{
    struct work *w = &c->work;
    double retry_after_s = 1;
    c->finish = finish_call;
    c->encoded_ns = clock_ns() - http_began_ns(c->x);
    w->deadline_ns = http_began_ns(c->x) + (int64_t)(seconds_for(c) * 1e9);
    w->is_wanted = is_wanted;
    w->done = done;
    w->self = c;
    if (!text_engine_submit(c->models->engine, w, &retry_after_s)) {
        fail_full(c, retry_after_s);
    }
}

void call_submit_requests(struct call *c, enum answer a, struct request **requests, int64_t n,
                          void (*finish_call)(struct call *c))
{
    c->work = (struct work){
        .lane = c->model->lanes[a], .requests = requests, .n_requests = n, .n_tokens = c->n_tokens};
    call_submit(c, finish_call);
}

struct call_times call_times(const struct call *c)
{
    const struct work *w = &c->work;
    if (!c->has_timing) {
        return (struct call_times){0};
    }
    int64_t begun = w->begun_ns > 0 ? w->begun_ns : w->ended_ns;
    return (struct call_times){.encode_s = (double)c->encoded_ns / 1e9,
                               .queue_s = (double)(begun - w->queued_ns) / 1e9,
                               .compute_s = (double)(w->ended_ns - begun) / 1e9};
}

/* ---- for endpoints ---- */

void *call_make_state(struct call *c, size_t bytes, void (*free_state)(void *state))
{
    c->state = calloc(1, bytes);
    c->free_state = c->state == NULL ? NULL : free_state;
    if (c->state == NULL) {
        call_fail(c, 503, NULL, "out of memory for a request");
    }
    return c->state;
}

static void add_number(struct call *c, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    http_add_header(c->x, name, text);
}

void call_add_headers(struct call *c)
{
    struct call_times times = call_times(c);
    int64_t total_ms = (clock_ns() - http_began_ns(c->x)) / 1000000;
    http_add_header(c->x, "x-compute-type", c->model->model.net.config.device->name);
    add_number(c, "x-compute-time", total_ms);
    add_number(c, "x-compute-characters", c->n_characters);
    add_number(c, "x-compute-tokens", c->n_tokens);
    add_number(c, "x-total-time", total_ms);
    add_number(c, "x-tokenization-time", (int64_t)(times.encode_s * 1e3));
    add_number(c, "x-queue-time", (int64_t)(times.queue_s * 1e3));
    add_number(c, "x-inference-time", (int64_t)(times.compute_s * 1e3));
    if (c->n_cut > 0) {
        add_number(c, "kiln-truncated", c->n_cut);
    }
}

void call_make_id(char to[CALL_ID_BYTES], const char *prefix)
{
    unsigned char random[12];
    size_t n = strlen(prefix);
    if (!entropy_draw(random, sizeof random)) { /* the time is as good as an id that need not be secret */
        int64_t now = clock_ns();
        memset(random, 0, sizeof random);
        memcpy(random, &now, sizeof now);
    }
    snprintf(to, CALL_ID_BYTES, "%s", prefix);
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(to + n + 2 * i, 3, "%02x", random[i]);
    }
}
