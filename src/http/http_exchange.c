#include "http/http_exchange.h"

#include "core/clock.h"
#include "http/http_mhd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lifetime ---- */

static void free_exchange(struct http_exchange *x)
{
    struct http_server *s = x->server;
    if (x->is_read && s->handler.ended != NULL) {
        s->handler.ended(s->handler.self, x, atomic_load(&x->sent_status), x->n_bytes,
                         clock_since_s(x->began_ns));
    }
    pthread_mutex_lock(&s->lock);
    s->n_body_bytes -= x->n_reserved;
    s->n_exchanges--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    buf_fini(&x->body);
    buf_fini(&x->headers);
    buf_fini(&x->answer);
    pthread_mutex_destroy(&x->lock);
    free((void *)x->head.fields);
    free(x->texts);
    free(x);
}

void http_exchange_let_go(struct http_exchange *x)
{
    if (atomic_fetch_sub(&x->n_holders, 1) == 1) {
        free_exchange(x);
    }
}

static void hold(struct http_exchange *x)
{
    atomic_fetch_add(&x->n_holders, 1);
}

static void release_line(struct http_line *line)
{
    http_exchange_let_go(
        (struct http_exchange *)(void *)((char *)line - offsetof(struct http_exchange, line)));
}

struct http_exchange *http_exchange_create(struct http_server *s, void *connection,
                                           struct http_client *client, const char *target)
{
    struct http_exchange *x = calloc(1, sizeof *x);
    char *copy = strdup(target);
    if (x == NULL || copy == NULL) {
        free(x);
        free(copy);
        return NULL;
    }
    *x = (struct http_exchange){
        .server = s,
        .line.release = release_line,
        .n_holders = 1,
        .texts = copy,
        .head = {.method = "", .target = copy, .version = "", .path = "", .query = "", .authority = ""},
        .began_ns = clock_ns(),
        .client = client,
        .connection = connection,
    };
    pthread_mutex_init(&x->lock, NULL);
    pthread_mutex_lock(&s->lock);
    s->n_exchanges++;
    pthread_mutex_unlock(&s->lock);
    return x;
}

struct http_refusal http_exchange_reserve(struct http_exchange *x, size_t n)
{
    struct http_server *s = x->server;
    struct http_refusal r = {0};
    pthread_mutex_lock(&s->lock);
    if (n > s->o.max_body_bytes - x->n_reserved) {
        r.status = 413;
        snprintf(r.message, sizeof r.message, "the body is longer than the limit, %zu bytes",
                 s->o.max_body_bytes);
    } else if (n > s->o.max_all_body_bytes - s->n_body_bytes) {
        r.status = 503;
        snprintf(r.message, sizeof r.message,
                 "the bodies of all requests are longer than the limit, %zu bytes; try again",
                 s->o.max_all_body_bytes);
    } else {
        s->n_body_bytes += n;
        x->n_reserved += n;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

void http_exchange_leave(struct http_exchange *x)
{
    atomic_store(&x->has_left, true);
}

static void run_handler(void *exchange)
{
    struct http_exchange *x = exchange;
    x->server->handler.handle(x->server->handler.self, x);
}

/* False: the server is ending. */
static bool call(struct http_exchange *x, void (*f)(void *self), void *self)
{
    hold(x);
    bool is_taken = http_workers_call(x->server->workers, &x->line, f, self);
    if (!is_taken) { /* the owner still holds it */
        atomic_fetch_sub(&x->n_holders, 1);
    }
    return is_taken;
}

void http_exchange_handle(struct http_exchange *x)
{
    hold(x); /* by its owner */
    if (!call(x, run_handler, x)) {
        http_reply(x, 503, NULL, NULL);
    }
}

/* ---- a request ---- */

const char *http_method(const struct http_exchange *x)
{
    return x->head.method;
}

const char *http_path(const struct http_exchange *x)
{
    return x->head.path;
}

const char *http_query(const struct http_exchange *x)
{
    return x->head.query;
}

const char *http_body(const struct http_exchange *x, size_t *n)
{
    *n = x->body.n;
    return buf_text(&x->body);
}

const char *http_address(const struct http_exchange *x)
{
    return x->address;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    return http_head_find(&x->head, name);
}

int64_t http_began_ns(const struct http_exchange *x)
{
    return x->began_ns;
}

void http_set_owner(struct http_exchange *x, void *owner)
{
    x->owner = owner;
}

void *http_owner(const struct http_exchange *x)
{
    return x->owner;
}

bool http_has_left(const struct http_exchange *x)
{
    return atomic_load(&x->has_left);
}

/* ---- its answer ---- */

void http_call(struct http_exchange *x, void (*f)(void *self), void *self)
{
    CHECK(call(x, f, self), "a call of an exchange that should have ended");
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    buf_append(&x->headers, name, strlen(name) + 1);
    buf_append(&x->headers, value, strlen(value) + 1);
}

void http_exchange_each_header(const struct http_exchange *x,
                               void (*add)(void *self, const char *name, const char *value), void *self)
{
    for (size_t i = 0; i < x->headers.n;) {
        const char *name = x->headers.data + i, *value = name + strlen(name) + 1;
        add(self, name, value);
        i = (size_t)(value + strlen(value) + 1 - x->headers.data);
    }
}

/* A chunked request is the last of its connection: of chunk extensions libmicrohttpd lets more pass than the
 * grammar, and what somebody hid in them must not become a request. */
static void begin_answer(struct http_exchange *x, int status, const char *content_type)
{
    const char *origin = http_gate_origin(&x->server->gate, &x->head);
    x->status = status;
    if (content_type != NULL) {
        http_add_header(x, "Content-Type", content_type);
    }
    if (origin != NULL) {
        http_add_header(x, "Access-Control-Allow-Origin", origin);
        http_add_header(x, "Vary", "Origin");
    }
    if (atomic_load(&x->server->is_closed) || x->head.body_bytes < 0) {
        http_add_header(x, "Connection", "close");
    }
}

void http_exchange_answer(struct http_exchange *x, int status, const char *content_type, struct buf *body)
{
    bool is_whole = body == NULL || !body->failed;
    begin_answer(x, is_whole ? status : 500, content_type);
    if (is_whole && body != NULL) {
        x->answer = *body;
        *body = (struct buf){0};
    } else if (body != NULL) {
        buf_fini(body);
    }
    x->n_bytes = x->answer.n;
}

/* Hands over what there is now; with the lock. */
static void wake(struct http_exchange *x)
{
    if (x->is_suspended) {
        x->is_suspended = false;
        http_mhd_resume(x);
    }
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct buf *body)
{
    pthread_mutex_lock(&x->lock);
    http_exchange_answer(x, status, content_type, body);
    wake(x);
    pthread_mutex_unlock(&x->lock);
    http_exchange_let_go(x);
}

void http_stream_begin(struct http_exchange *x, int status, const char *content_type)
{
    pthread_mutex_lock(&x->lock);
    begin_answer(x, status, content_type);
    x->is_stream = true;
    wake(x);
    pthread_mutex_unlock(&x->lock);
}

/* Drops the part that was sent once it is the larger one, so that each byte is moved once. */
static void drop_sent(struct http_exchange *x)
{
    struct buf *b = &x->answer;
    if (x->n_sent > b->n / 2) {
        memmove(b->data, b->data + x->n_sent, b->n - x->n_sent);
        b->n -= x->n_sent;
        x->n_sent = 0;
    }
}

void http_stream_write(struct http_exchange *x, const void *bytes, size_t n)
{
    pthread_mutex_lock(&x->lock);
    if (!http_has_left(x)) {
        drop_sent(x);
        buf_append(&x->answer, bytes, n);
        x->n_bytes += n;
        if (x->answer.failed || x->answer.n - x->n_sent > x->server->o.max_unread_bytes) {
            http_exchange_leave(x);
            http_client_cut(x->client);
        }
        wake(x);
    }
    pthread_mutex_unlock(&x->lock);
}

void http_stream_end(struct http_exchange *x, bool is_whole)
{
    pthread_mutex_lock(&x->lock);
    x->is_ended = true;
    x->is_whole = is_whole && !x->answer.failed;
    wake(x);
    pthread_mutex_unlock(&x->lock);
    http_exchange_let_go(x);
}

/* ---- answers of the server's own ---- */

void http_exchange_answer_refusal(struct http_exchange *x, struct http_refusal r)
{
    struct buf body = {0};
    const struct http_handler *h = &x->server->handler;
    if (r.status == 401) {
        http_add_header(x, "WWW-Authenticate", "Bearer");
    }
    if (r.status == 503) {
        http_add_header(x, "Retry-After", "1");
    }
    const char *type = h->describe_error(h->self, &body, x->head.path, r.status, r.message);
    http_exchange_answer(x, r.status, type, &body);
}

/* Methods that any path takes, and those that a page of an allowed origin may send. */
void http_exchange_answer_options(struct http_exchange *x)
{
    static const char methods[] = "GET, HEAD, POST, OPTIONS";
    const char *asked = http_head_find(&x->head, "Access-Control-Request-Headers");
    http_add_header(x, "Allow", methods);
    if (http_gate_origin(&x->server->gate, &x->head) != NULL) {
        http_add_header(x, "Access-Control-Allow-Methods", methods);
        http_add_header(x, "Access-Control-Allow-Headers", asked != NULL ? asked : "Content-Type");
        http_add_header(x, "Access-Control-Max-Age", "600");
    }
    http_exchange_answer(x, 204, NULL, NULL);
}

void http_exchange_print_refusal(const struct http_handler *h, struct buf *out, const char *path,
                                 struct http_refusal r, const char *reason)
{
    struct buf body = {0};
    const char *type = h->describe_error(h->self, &body, path, r.status, r.message);
    buf_printf(out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
               r.status, reason, type, body.n);
    buf_append(out, buf_text(&body), body.n);
    buf_fini(&body);
}
