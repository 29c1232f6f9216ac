/* http_mhd: libmicrohttpd runs in one thread of its own, which reads requests and writes answers.  Handlers
 * run in workers, so that a long one holds up no other connection: the connection is suspended until its
 * exchange has something for it. */
#include "http/http_mhd.h"

#include "core/signals.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Buffers of one connection: the head of a request, and that of its answer. */
enum { CONNECTION_BYTES = 32 << 10, STREAM_BLOCK_BYTES = 16 << 10 };

/* The version whose parser copy_head knows; later ones refuse by themselves what it looks for. */
#define CUTS_IN_PLACE "0.9.75"

const char *http_server_library(void)
{
    return MHD_get_version();
}

const char *http_mhd_reason(int status)
{
    return MHD_get_reason_phrase_for((unsigned)status);
}

static void suspend(struct http_exchange *x)
{
    x->is_suspended = true;
    MHD_suspend_connection(x->connection);
}

void http_mhd_resume(struct http_exchange *x)
{
    MHD_resume_connection(x->connection);
}

/* ---- answers ---- */

/* Fetches what of a stream was not sent. */
static ssize_t read_stream(void *exchange, uint64_t position, char *to, size_t most)
{
    (void)position;
    struct http_exchange *x = exchange;
    pthread_mutex_lock(&x->lock);
    size_t n = x->answer.n - x->n_sent;
    n = n < most ? n : most;
    ssize_t result = (ssize_t)n;
    if (n > 0) {
        memcpy(to, x->answer.data + x->n_sent, n);
        x->n_sent += n;
    } else if (x->is_ended) {
        result = x->is_whole ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
        suspend(x);
    }
    pthread_mutex_unlock(&x->lock);
    return result;
}

static void add_header(void *response, const char *name, const char *value)
{
    MHD_add_response_header(response, name, value); /* refuses what is no header */
}

/* Hands the answer over, which nobody else changes any more, or only as a stream: without the lock, since
 * libmicrohttpd has one around read_stream. */
static enum MHD_Result queue(struct http_exchange *x)
{
    struct MHD_Response *r =
        x->is_stream
            ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, x, NULL)
            : MHD_create_response_from_buffer(x->answer.n, x->answer.data, MHD_RESPMEM_MUST_FREE);
    if (r == NULL) {
        return MHD_NO;
    }
    if (!x->is_stream) {
        x->answer = (struct buf){0};
    }
    http_exchange_each_header(x, add_header, r);
    enum MHD_Result result = MHD_queue_response(x->connection, (unsigned)x->status, r);
    MHD_destroy_response(r); /* it is held until it is sent */
    if (result == MHD_YES) {
        atomic_store(&x->sent_status, x->status);
    }
    return result;
}

/* ---- requests ---- */

/* A request's first line was read. */
static void *begin(void *server, const char *target, struct MHD_Connection *connection)
{
    struct http_server *s = server;
    struct http_client *client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    target = target != NULL ? target : "";
    struct http_exchange *x = client != NULL ? http_exchange_create(s, connection, client, target) : NULL;
    if (x == NULL) {
        return NULL;
    }
    x->raw_target = target;
    http_address_print(x->address, sizeof x->address,
                       MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    http_client_begin(client, s->o.request_read_timeout_s);
    return x;
}

/* Collects the header fields.  libmicrohttpd cuts the lines of a head in place, so that names and values lie
 * one behind another in its memory, CR and LF between them.  Where they do not, a line held a NUL, ended with
 * LF alone, or went on in the next one. */
struct collector {
    struct http_field *fields;
    int n;
    const char *end; /* end of the line before */
    bool has_gap;
};

static enum MHD_Result collect(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct collector *c = self;
    value = value != NULL ? value : "";
    c->has_gap = c->has_gap || name != c->end + 2;
    c->fields[c->n++] = (struct http_field){.name = name, .value = value};
    c->end = value + strlen(value);
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
static bool copy_head(struct http_exchange *x, const char *method, const char *version, bool *has_gap)
{
    struct MHD_Connection *connection = x->connection;
    size_t n_target = strlen(x->head.target);
    int n = MHD_get_connection_values(connection, MHD_HEADER_KIND, NULL, NULL);
    struct collector c = {.fields = malloc(((size_t)n + 1) * sizeof *c.fields),
                          .end = version + strlen(version)};
    x->head.fields = c.fields;
    if (c.fields == NULL) {
        return false;
    }
    MHD_get_connection_values(connection, MHD_HEADER_KIND, collect, &c);
    x->head.n_fields = c.n;
    size_t n_head = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    *has_gap = strcmp(MHD_get_version(), CUTS_IN_PLACE) == 0 &&
               (c.has_gap || x->raw_target != method + strlen(method) + 1 ||
                version != x->raw_target + n_target + 1 || method + n_head != c.end + 4);
    size_t bytes = strlen(method) + 1 + n_target + 1 + strlen(version) + 1 + n_target + 3;
    for (int i = 0; i < n; i++) {
        bytes += strlen(c.fields[i].name) + 1 + strlen(c.fields[i].value) + 1;
    }
    char *texts = malloc(bytes), *end = texts;
    if (texts == NULL) {
        return false;
    }
    x->head.target = copy(&end, x->head.target);
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

/* The head is read: lets the request in, or says why not.  `may_go_on`: another request may follow. */
static struct http_refusal judge(struct http_exchange *x, bool has_gap, bool *may_go_on)
{
    struct http_server *s = x->server;
    struct http_refusal r = http_head_read(&x->head, x->room);
    if (has_gap) {
        r = (struct http_refusal){400,
                                  "a line of the head has a NUL, goes on in the next, or ends without CR LF"};
    }
    *may_go_on = r.status == 0 && x->head.body_bytes == 0;
    if (r.status == 0) {
        bool is_open =
            s->handler.is_open != NULL && s->handler.is_open(s->handler.self, x->head.method, x->head.path);
        r = http_gate_check(&s->gate, &x->head, is_open);
    }
    return r.status == 0 && x->head.body_bytes > 0 ? http_exchange_reserve(x, (size_t)x->head.body_bytes) : r;
}

/* Answers a refusal at once, unless another request may follow: libmicrohttpd closes a connection that is
 * answered before the request's end. */
static enum MHD_Result admit(struct http_exchange *x, const char *method, const char *version)
{
    bool has_gap, may_go_on;
    if (!copy_head(x, method, version, &has_gap)) {
        return MHD_NO;
    }
    struct http_refusal r = judge(x, has_gap, &may_go_on);
    x->is_read = true;
    if (http_client_set_exchange(x->client, x)) {
        http_exchange_leave(x);
    }
    if (r.status == 0) {
        return MHD_YES;
    }
    pthread_mutex_lock(&x->lock);
    http_exchange_answer_refusal(x, r);
    pthread_mutex_unlock(&x->lock);
    return may_go_on ? MHD_YES : queue(x);
}

/* libmicrohttpd takes no answer in the middle of a body, so a refusal is written beside it. */
static enum MHD_Result take_body(struct http_exchange *x, const char *bytes, size_t n)
{
    struct http_refusal r = {0};
    if (x->head.body_bytes < 0) {
        r = http_exchange_reserve(x, n);
    }
    if (r.status == 0) {
        buf_append(&x->body, bytes, n);
        r = x->body.failed ? (struct http_refusal){503, "out of memory for the body"} : r;
    }
    if (r.status == 0) {
        return MHD_YES;
    }
    struct buf words = {0};
    http_exchange_print_refusal(&x->server->handler, &words, x->head.path, r, http_mhd_reason(r.status));
    http_client_say(x->client, words.data, words.n);
    atomic_store(&x->sent_status, r.status);
    buf_fini(&words);
    return MHD_NO;
}

/* The request is whole, or its connection was resumed: hands over the answer, if there is one. */
static enum MHD_Result answer(struct http_exchange *x)
{
    bool is_new = !x->is_whole_request;
    x->is_whole_request = true;
    if (is_new && !http_client_has_read(x->client)) {
        return MHD_NO;
    }
    pthread_mutex_lock(&x->lock);
    if (is_new && x->status == 0 && strcmp(x->head.method, "OPTIONS") == 0) {
        http_exchange_answer_options(x);
    }
    bool is_answered = x->status != 0;
    if (!is_answered) {
        suspend(x);
    }
    pthread_mutex_unlock(&x->lock);
    if (is_answered) {
        return queue(x);
    }
    if (is_new) {
        http_exchange_handle(x);
    }
    return MHD_YES;
}

/* Called once for the head, for each part of the body, and then until an answer is queued. */
static enum MHD_Result on_request(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes, size_t *n,
                                  void **exchange)
{
    (void)server, (void)connection, (void)url;
    struct http_exchange *x = *exchange;
    size_t n_bytes = *n;
    *n = 0;
    return x == NULL     ? MHD_NO
           : !x->is_read ? admit(x, method, version)
           : n_bytes > 0 ? take_body(x, bytes, n_bytes)
                         : answer(x);
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
    http_exchange_leave(x);
    pthread_mutex_lock(&x->lock);
    http_client_end(x->client, x->server->o.idle_timeout_s);
    x->connection = NULL;
    x->client = NULL;
    x->is_suspended = false;
    pthread_mutex_unlock(&x->lock);
    http_exchange_let_go(x);
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

/* A client that takes nothing of its answer is cut off after so many seconds; the watch sees to the rest. */
static unsigned stall_seconds(const struct http_options *o)
{
    double longest =
        o->idle_timeout_s > o->request_read_timeout_s ? o->idle_timeout_s : o->request_read_timeout_s;
    return (unsigned)longest + 1;
}

struct status http_mhd_start(struct http_server *s)
{
    const struct http_options *o = &s->o;
    sigset_t before;
    signals_block(&before);
    s->library = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
        MHD_OPTION_LISTEN_SOCKET, s->address.fd, MHD_OPTION_URI_LOG_CALLBACK, begin, s,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->max_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)o->max_connections_per_address, MHD_OPTION_CONNECTION_TIMEOUT, stall_seconds(o),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    signals_restore(&before);
    return s->library != NULL ? status_ok() : status_error(STATUS_IO, "libmicrohttpd cannot start");
}

void http_mhd_close_door(struct http_server *s)
{
    if (s->library != NULL) {
        MHD_quiesce_daemon(s->library);
    }
}

void http_mhd_stop(struct http_server *s)
{
    if (s->library != NULL) {
        MHD_stop_daemon(s->library);
        s->library = NULL;
    }
}
