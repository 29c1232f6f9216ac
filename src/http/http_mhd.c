/* http_mhd: http/http.h by libmicrohttpd, which one thread runs in: it reads requests and writes answers.
 * Handlers run in workers (http_workers.h), so that a long one holds up no other connection; what they
 * answer is left in the exchange, and the connection, which was suspended meanwhile, is resumed.
 *
 * An exchange is held by libmicrohttpd until the connection is done with it, by its owner until it is ended,
 * and by each call that waits in the workers; who lets go last frees it. */
#include "http/http.h"

#include "core/clock.h"
#include "core/signals.h"
#include "http/http_address.h"
#include "http/http_gate.h"
#include "http/http_watch.h"
#include "http/http_workers.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Of one connection: the head of a request, and that of its answer. */
enum { CONNECTION_BYTES = 32 << 10, STREAM_BLOCK_BYTES = 16 << 10 };

struct http_server {
    struct http_options o;
    struct http_handler handler;
    struct http_gate gate;
    struct http_address address;
    struct http_watch *watch;
    struct http_workers *workers;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t n_exchanges;
    size_t n_body_bytes;   /* of all exchanges */
    atomic_bool is_closed; /* the door */
};

struct http_exchange {
    struct http_server *server;
    struct http_line line; /* of its calls */
    atomic_int n_holders;

    /* The request. */
    const char *raw_target; /* in libmicrohttpd's memory, before it is decoded there */
    size_t n_target;
    struct http_head head;
    char *texts, *room; /* of the head, and behind its texts the room for http_head_read */
    bool has_gap;       /* see copy_head */
    struct buf body;
    size_t n_reserved; /* of the server's n_body_bytes */
    char address[48];
    int64_t began_ns;
    struct http_refusal refusal;
    bool is_admitted, is_handled; /* its head was read; the handler has it */
    void *owner;
    atomic_bool has_left;

    /* The answer; all below is for whoever has the lock. */
    pthread_mutex_t lock;
    struct http_client *client;
    struct MHD_Connection *connection; /* NULL: it is done */
    bool is_suspended;
    struct buf headers; /* name, NUL, value, NUL ... */
    struct MHD_Response *response;
    bool is_queued, is_streaming, is_ended, is_whole;
    int status;
    size_t n_bytes;    /* of its body */
    struct buf unread; /* of a stream; the first n_read bytes were sent */
    size_t n_read;
};

/* ---- lifetime ---- */

static void free_exchange(struct http_exchange *x)
{
    struct http_server *s = x->server;
    if (x->is_admitted && s->handler.ended != NULL) {
        s->handler.ended(s->handler.self, x, x->is_queued ? x->status : 0, x->n_bytes,
                         clock_since_s(x->began_ns));
    }
    if (x->response != NULL) {
        MHD_destroy_response(x->response);
    }
    pthread_mutex_lock(&s->lock);
    s->n_body_bytes -= x->n_reserved;
    s->n_exchanges--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    buf_fini(&x->body);
    buf_fini(&x->headers);
    buf_fini(&x->unread);
    pthread_mutex_destroy(&x->lock);
    free((void *)x->head.fields);
    free(x->texts);
    free(x);
}

static void hold(struct http_exchange *x)
{
    atomic_fetch_add(&x->n_holders, 1);
}

static void let_go(struct http_exchange *x)
{
    if (atomic_fetch_sub(&x->n_holders, 1) == 1) {
        free_exchange(x);
    }
}

static void release_line(struct http_line *line)
{
    let_go((struct http_exchange *)((char *)line - offsetof(struct http_exchange, line)));
}

/* Lets the connection go on, to fetch what the exchange has now; with the lock. */
static void wake(struct http_exchange *x)
{
    if (x->is_suspended) {
        x->is_suspended = false;
        MHD_resume_connection(x->connection);
    }
}

static void suspend(struct http_exchange *x)
{
    x->is_suspended = true;
    MHD_suspend_connection(x->connection);
}

static void leave(void *exchange)
{
    struct http_exchange *x = exchange;
    atomic_store(&x->has_left, true);
}

/* ---- answers ---- */

static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
    MHD_add_response_header(r, name, value); /* it refuses what is no header */
}

/* The headers of every answer, and those that were added to it. */
static void add_headers(struct http_exchange *x, struct MHD_Response *r, const char *content_type)
{
    if (content_type != NULL) {
        add_header(r, "Content-Type", content_type);
    }
    const char *origin = http_gate_origin(&x->server->gate, &x->head);
    if (origin != NULL) {
        add_header(r, "Access-Control-Allow-Origin", origin);
        add_header(r, "Vary", "Origin");
    }
    if (x->server->is_closed) {
        add_header(r, "Connection", "close");
    }
    for (size_t i = 0; i < x->headers.n;) {
        const char *name = x->headers.data + i, *value = name + strlen(name) + 1;
        add_header(r, name, value);
        i = (size_t)(value + strlen(value) + 1 - x->headers.data);
    }
}

/* Takes the body over. */
static struct MHD_Response *make_response(struct http_exchange *x, const char *content_type, struct buf *body)
{
    struct buf none = {0};
    body = body != NULL ? body : &none;
    x->n_bytes = body->n;
    struct MHD_Response *r = MHD_create_response_from_buffer(body->n, body->data, MHD_RESPMEM_MUST_FREE);
    if (r == NULL) {
        buf_fini(body);
        return NULL;
    }
    *body = (struct buf){0};
    add_headers(x, r, content_type);
    return r;
}

/* Hands the answer over; with the lock, in libmicrohttpd's thread. */
static enum MHD_Result queue(struct http_exchange *x)
{
    x->is_queued =
        x->response != NULL && MHD_queue_response(x->connection, (unsigned)x->status, x->response) == MHD_YES;
    return x->is_queued ? MHD_YES : MHD_NO;
}

static enum MHD_Result queue_refusal(struct http_exchange *x)
{
    struct buf body = {0};
    x->status = x->refusal.status;
    const struct http_handler *h = &x->server->handler;
    const char *type = h->describe_error(h->self, &body, x->head.path, x->status, x->refusal.message);
    x->response = make_response(x, type, &body);
    if (x->response != NULL && x->status == 401) {
        add_header(x->response, "WWW-Authenticate", "Bearer");
    }
    if (x->response != NULL && x->status == 503) {
        add_header(x->response, "Retry-After", "1");
    }
    return queue(x);
}

/* An answer that is written beside libmicrohttpd, which takes none while it reads a body. */
static void print_refusal(const struct http_handler *h, struct buf *out, const char *path, int status,
                          const char *message)
{
    struct buf body = {0};
    const char *type = h->describe_error(h->self, &body, path, status, message);
    buf_printf(out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
               status, MHD_get_reason_phrase_for((unsigned)status), type, body.n);
    buf_append(out, buf_text(&body), body.n);
    buf_fini(&body);
}

static void refuse_late(void *server, void *exchange, struct buf *last_words)
{
    struct http_server *s = server;
    struct http_exchange *x = exchange;
    if (x != NULL) {
        leave(x);
    }
    print_refusal(&s->handler, last_words, x != NULL ? x->head.path : "", 408,
                  "the request took too long to arrive");
}

/* OPTIONS: what any path takes, and what a page of an allowed origin may send. */
static enum MHD_Result queue_options(struct http_exchange *x)
{
    static const char methods[] = "GET, HEAD, POST, OPTIONS";
    x->status = 204;
    x->response = make_response(x, NULL, NULL);
    if (x->response != NULL) {
        add_header(x->response, "Allow", methods);
    }
    if (x->response != NULL && http_gate_origin(&x->server->gate, &x->head) != NULL) {
        const char *asked = http_head_find(&x->head, "Access-Control-Request-Headers");
        add_header(x->response, "Access-Control-Allow-Methods", methods);
        add_header(x->response, "Access-Control-Allow-Headers", asked != NULL ? asked : "Content-Type");
        add_header(x->response, "Access-Control-Max-Age", "600");
    }
    return queue(x);
}

/* ---- requests ---- */

/* Begins an exchange, whose request's first line was read. */
static void *begin(void *server, const char *target, struct MHD_Connection *connection)
{
    struct http_server *s = server;
    const union MHD_ConnectionInfo *client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_exchange *x = client->socket_context != NULL ? calloc(1, sizeof *x) : NULL;
    if (x == NULL) {
        return NULL;
    }
    *x = (struct http_exchange){
        .server = s,
        .line.release = release_line,
        .n_holders = 1,
        .raw_target = target != NULL ? target : "",
        .n_target = target != NULL ? strlen(target) : 0,
        .head = {.method = "", .target = "", .path = "", .query = "", .authority = ""},
        .began_ns = clock_ns(),
        .client = client->socket_context,
        .connection = connection,
    };
    pthread_mutex_init(&x->lock, NULL);
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    http_address_print(x->address, sizeof x->address, from->client_addr);
    x->texts = malloc(x->n_target + 1);
    if (x->texts != NULL) {
        memcpy(x->texts, x->raw_target, x->n_target + 1);
    }
    pthread_mutex_lock(&s->lock);
    s->n_exchanges++;
    pthread_mutex_unlock(&s->lock);
    http_client_begin(x->client, s->o.request_read_timeout_s);
    return x;
}

/* Collects the header fields; libmicrohttpd cuts the lines of a head in place, so that names and values lie
 * one behind another in its memory. Where they do not, a line held a NUL or went on in the next one. */
struct collector {
    struct http_field *fields;
    int n;
    const char *next; /* where the next name begins; NULL: any place */
    bool has_gap;
};

static enum MHD_Result collect(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct collector *c = self;
    value = value != NULL ? value : "";
    c->has_gap = c->has_gap || (c->next != NULL && name != c->next && name != c->next + 1);
    c->fields[c->n++] = (struct http_field){.name = name, .value = value};
    c->next = value + strlen(value) + 1;
    return MHD_YES;
}

/* Copies a text to *end, which is moved behind it. */
static const char *copy(char **end, const char *text)
{
    size_t n = strlen(text) + 1;
    char *to = memcpy(*end, text, n);
    *end += n;
    return to;
}

/* A value without the blanks at its end: not those of Transfer-Encoding, which libmicrohttpd does not know
 * for "chunked" then. */
static const char *copy_value(char **end, const struct http_field *field)
{
    const char *to = copy(end, field->value);
    char *last = *end - 1;
    while (strcasecmp(field->name, "Transfer-Encoding") != 0 && last > to &&
           strchr(" \t", last[-1]) != NULL) {
        *--last = '\0';
    }
    return to;
}

/* Copies the head: libmicrohttpd's memory lasts as long as the connection, which may end before. */
static bool copy_head(struct http_exchange *x, const char *method, const char *version)
{
    int n = MHD_get_connection_values(x->connection, MHD_HEADER_KIND, NULL, NULL);
    struct collector c = {.fields = malloc(((size_t)n + 1) * sizeof *c.fields),
                          .next = version + strlen(version) + 1};
    x->head.fields = c.fields;
    if (c.fields == NULL || x->texts == NULL) {
        return false;
    }
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, collect, &c);
    x->head.n_fields = c.n;
    x->has_gap = c.has_gap || x->raw_target != method + strlen(method) + 1 ||
                 version != x->raw_target + x->n_target + 1 || (c.n > 0 && *c.next != '\0');
    size_t bytes = strlen(method) + 1 + x->n_target + 1 + strlen(version) + 1 + x->n_target + 3;
    for (int i = 0; i < n; i++) {
        bytes += strlen(c.fields[i].name) + 1 + strlen(c.fields[i].value) + 1;
    }
    char *texts = malloc(bytes), *end = texts;
    if (texts == NULL) {
        return false;
    }
    x->head.target = copy(&end, x->texts);
    free(x->texts);
    x->texts = texts;
    x->head.method = copy(&end, method);
    x->head.version = copy(&end, version);
    for (int i = 0; i < n; i++) {
        const char *value = copy_value(&end, &c.fields[i]);
        c.fields[i] = (struct http_field){.name = copy(&end, c.fields[i].name), .value = value};
    }
    x->room = end;
    return true;
}

/* Counts so many more bytes of the body against the limits. */
static struct http_refusal reserve(struct http_exchange *x, size_t n)
{
    struct http_server *s = x->server;
    struct http_refusal r = {0};
    pthread_mutex_lock(&s->lock);
    if (x->n_reserved + n > s->o.max_body_bytes) {
        r.status = 413;
        snprintf(r.message, sizeof r.message, "the body is longer than the limit, %zu bytes",
                 s->o.max_body_bytes);
    } else if (s->n_body_bytes + n > s->o.max_all_body_bytes) {
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

/* The head is read: lets the request in, or refuses it.  A refusal is sent at once where a body is still to
 * come or cannot be told from the next request, and libmicrohttpd closes the connection then. */
static enum MHD_Result admit(struct http_exchange *x, const char *method, const char *version)
{
    struct http_server *s = x->server;
    if (!copy_head(x, method, version)) {
        return MHD_NO;
    }
    x->refusal = http_head_read(&x->head, x->room);
    if (x->has_gap) {
        x->refusal = (struct http_refusal){400, "a line of the head has a NUL, or goes on in the next line"};
    }
    bool is_clear = x->refusal.status == 0;
    if (is_clear) {
        bool is_open = s->handler.is_open != NULL && s->handler.is_open(s->handler.self, x->head.path);
        x->refusal = http_gate_check(&s->gate, &x->head, is_open);
    }
    if (x->refusal.status == 0 && x->head.body_bytes > 0) {
        x->refusal = reserve(x, (size_t)x->head.body_bytes);
    }
    x->is_admitted = true;
    if (http_client_set_exchange(x->client, x)) {
        leave(x);
    }
    if (x->refusal.status == 0 || (is_clear && x->head.body_bytes == 0)) {
        return MHD_YES;
    }
    http_client_refuse(x->client, NULL, 0);
    return queue_refusal(x);
}

static enum MHD_Result take_body(struct http_exchange *x, const char *bytes, size_t n)
{
    struct http_refusal r = {0};
    if (x->head.body_bytes < 0) {
        r = reserve(x, n);
    }
    buf_append(&x->body, bytes, n);
    if (r.status == 0 && !x->body.failed) {
        return MHD_YES;
    }
    struct buf words = {0};
    print_refusal(&x->server->handler, &words, x->head.path, r.status > 0 ? r.status : 503,
                  r.status > 0 ? r.message : "out of memory");
    http_client_refuse(x->client, words.data, words.n);
    buf_fini(&words);
    return MHD_NO;
}

static void run_handler(void *exchange)
{
    struct http_exchange *x = exchange;
    x->server->handler.handle(x->server->handler.self, x);
}

/* The request is whole: hands it over, or answers it here; later, hands over the answer. */
static enum MHD_Result answer(struct http_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    enum MHD_Result result = MHD_YES;
    bool is_new = !x->is_handled;
    x->is_handled = true;
    if (is_new && !http_client_has_read(x->client)) {
        result = MHD_NO;
    } else if (is_new && x->refusal.status != 0) {
        result = queue_refusal(x);
    } else if (is_new && strcmp(x->head.method, "OPTIONS") == 0) {
        result = queue_options(x);
    } else if (is_new) {
        suspend(x);
        hold(x);
        http_call(x, run_handler, x);
    } else if (x->status != 0) {
        result = queue(x);
    } else {
        suspend(x);
    }
    pthread_mutex_unlock(&x->lock);
    return result;
}

/* libmicrohttpd's: once for the head, for each part of the body, and then until an answer is queued. */
static enum MHD_Result on_request(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes, size_t *n,
                                  void **exchange)
{
    (void)server, (void)connection, (void)url;
    struct http_exchange *x = *exchange;
    if (x == NULL) {
        return MHD_NO;
    }
    if (!x->is_admitted) {
        return admit(x, method, version);
    }
    if (*n > 0) {
        enum MHD_Result result = take_body(x, bytes, *n);
        *n = 0;
        return result;
    }
    return answer(x);
}

static void on_completed(void *server, struct MHD_Connection *connection, void **exchange,
                         enum MHD_RequestTerminationCode code)
{
    (void)server, (void)connection, (void)code;
    struct http_exchange *x = *exchange;
    *exchange = NULL;
    if (x == NULL) {
        return;
    }
    leave(x);
    pthread_mutex_lock(&x->lock);
    http_client_end(x->client, x->server->o.idle_timeout_s);
    x->connection = NULL;
    x->client = NULL;
    x->is_suspended = false;
    if (x->response != NULL) {
        MHD_destroy_response(x->response);
        x->response = NULL;
    }
    pthread_mutex_unlock(&x->lock);
    let_go(x);
}

static void on_connection(void *server, struct MHD_Connection *connection, void **client,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = server;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        *client = http_client_add(s->watch, fd, s->o.request_read_timeout_s);
    } else if (*client != NULL) {
        http_client_remove(*client);
        *client = NULL;
    }
}

/* ---- the server ---- */

struct http_options http_defaults(void)
{
    return (struct http_options){
        .host = "127.0.0.1",
        .port = 8080,
        .socket = -1,
        .n_threads = 4,
        .max_connections = 512,
        .max_connections_per_address = 0,
        .max_body_bytes = 32 << 20,
        .max_all_body_bytes = 256 << 20,
        .max_unread_bytes = 1 << 20,
        .request_read_timeout_s = 30,
        .idle_timeout_s = 75,
    };
}

static struct status open_address(struct http_address *a, const struct http_options *o)
{
    return o->socket >= 0           ? http_address_take(a, o->socket)
           : o->unix_socket != NULL ? http_address_open_unix(a, o->unix_socket)
                                    : http_address_open(a, o->host, o->port);
}

/* A connection that sends nothing, and takes none of its answer, ends after so many seconds. */
static unsigned stall_seconds(const struct http_options *o)
{
    double longest =
        o->idle_timeout_s > o->request_read_timeout_s ? o->idle_timeout_s : o->request_read_timeout_s;
    return (unsigned)longest + 1;
}

static struct status start(struct http_server *s)
{
    const struct http_options *o = &s->o;
    sigset_t before;
    signals_block(&before);
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
        MHD_OPTION_LISTEN_SOCKET, s->address.fd, MHD_OPTION_URI_LOG_CALLBACK, begin, s,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->max_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)o->max_connections_per_address, MHD_OPTION_CONNECTION_TIMEOUT, stall_seconds(o),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    signals_restore(&before);
    return s->daemon != NULL ? status_ok() : status_error(STATUS_IO, "libmicrohttpd cannot start");
}

struct status http_server_create(struct http_server **server, const struct http_options *o,
                                 const struct http_handler *handler)
{
    struct http_server *s = calloc(1, sizeof *s);
    *server = NULL;
    if (s == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a server");
    }
    *s = (struct http_server){.o = *o, .handler = *handler, .address.fd = -1};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    struct http_watch_events events = {.left = leave, .late = refuse_late, .self = s};
    struct status status = open_address(&s->address, o);
    s->gate = (struct http_gate){.hosts = o->hosts,
                                 .n_hosts = o->n_hosts,
                                 .is_loopback = s->address.is_loopback,
                                 .origins = o->origins,
                                 .n_origins = o->n_origins,
                                 .keys = o->keys,
                                 .n_keys = o->n_keys,
                                 .max_body_bytes = o->max_body_bytes};
    status = failed(status) ? status : http_watch_create(&s->watch, &events);
    status = failed(status) ? status : http_workers_create(&s->workers, o->n_threads);
    status = failed(status) ? status : start(s);
    if (failed(status)) {
        http_server_destroy(s);
        return status;
    }
    *server = s;
    return status_ok();
}

int http_server_port(const struct http_server *s)
{
    return s->address.port;
}

void http_server_close_door(struct http_server *s)
{
    if (atomic_exchange(&s->is_closed, true)) {
        return;
    }
    if (s->daemon != NULL) {
        MHD_quiesce_daemon(s->daemon);
    }
    http_address_close(&s->address);
    if (s->watch != NULL) {
        http_watch_close_idle(s->watch);
    }
}

int64_t http_server_exchanges(const struct http_server *s)
{
    struct http_server *locked = (struct http_server *)s;
    pthread_mutex_lock(&locked->lock);
    int64_t n = s->n_exchanges;
    pthread_mutex_unlock(&locked->lock);
    return n;
}

bool http_server_wait(struct http_server *s, double seconds)
{
    int64_t until_ns = clock_ns() + (int64_t)(seconds * 1e9);
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    pthread_mutex_lock(&s->lock);
    while (s->n_exchanges > 0 && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0) {
    }
    bool ended = s->n_exchanges == 0;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

void http_server_destroy(struct http_server *s)
{
    if (s == NULL) {
        return;
    }
    http_server_close_door(s);
    if (s->daemon != NULL) {
        MHD_stop_daemon(s->daemon);
    }
    http_workers_destroy(s->workers);
    http_watch_destroy(s->watch);
    CHECK(s->n_exchanges == 0, "%lld exchanges have not ended", (long long)s->n_exchanges);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
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
    return atomic_load(&((struct http_exchange *)x)->has_left);
}

/* ---- its answer ---- */

void http_call(struct http_exchange *x, void (*f)(void *self), void *self)
{
    hold(x);
    http_workers_call(x->server->workers, &x->line, f, self);
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    buf_append(&x->headers, name, strlen(name) + 1);
    buf_append(&x->headers, value, strlen(value) + 1);
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct buf *body)
{
    pthread_mutex_lock(&x->lock);
    x->status = body == NULL || !body->failed ? status : 500;
    x->response = x->connection != NULL ? make_response(x, content_type, body) : NULL;
    wake(x);
    pthread_mutex_unlock(&x->lock);
    if (body != NULL) {
        buf_fini(body);
    }
    let_go(x);
}

/* libmicrohttpd's: fetches what of a stream has not been sent. */
static ssize_t read_stream(void *exchange, uint64_t position, char *to, size_t most)
{
    (void)position;
    struct http_exchange *x = exchange;
    pthread_mutex_lock(&x->lock);
    size_t n = x->unread.n - x->n_read;
    n = n < most ? n : most;
    ssize_t result = (ssize_t)n;
    if (n > 0) {
        memcpy(to, x->unread.data + x->n_read, n);
        x->n_read += n;
    } else if (x->is_ended) {
        result = x->is_whole ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
        suspend(x);
    }
    pthread_mutex_unlock(&x->lock);
    return result;
}

void http_stream_begin(struct http_exchange *x, int status, const char *content_type)
{
    pthread_mutex_lock(&x->lock);
    x->status = status;
    if (x->connection != NULL) {
        x->response =
            MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, x, NULL);
    }
    if (x->response != NULL) {
        add_headers(x, x->response, content_type);
    }
    wake(x);
    pthread_mutex_unlock(&x->lock);
}

/* Drops the part that was sent. */
static void shift_unread(struct http_exchange *x)
{
    memmove(x->unread.data, x->unread.data + x->n_read, x->unread.n - x->n_read);
    x->unread.n -= x->n_read;
    x->n_read = 0;
}

void http_stream_write(struct http_exchange *x, const void *bytes, size_t n)
{
    pthread_mutex_lock(&x->lock);
    if (x->n_read > x->unread.n / 2) {
        shift_unread(x);
    }
    if (!http_has_left(x)) {
        buf_append(&x->unread, bytes, n);
        x->n_bytes += n;
        if (x->unread.failed || x->unread.n - x->n_read > x->server->o.max_unread_bytes) {
            leave(x);
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
    x->is_whole = is_whole && !x->unread.failed;
    wake(x);
    pthread_mutex_unlock(&x->lock);
    let_go(x);
}
