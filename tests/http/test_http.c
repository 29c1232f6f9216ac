/* A server and clients of bytes: what is answered, at once or later, whole or as a stream; clients that
 * leave, do not read, are slow, or ask for too much; and how the server ends. */
#include "raw_client.h"

#include "http/http.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#define HOST          "Host: localhost\r\n"
#define LAST          HOST "Connection: close\r\n\r\n"
#define POST(path, n) "POST " path " HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: " n "\r\n"

/* The owner of the server under test. */
struct owner {
    struct http_server *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_exchange *kept; /* of /keep and /stream */
    int n_ended, last_status;
    int n_called;
};

static struct buf text_of(const char *text)
{
    struct buf b = {0};
    buf_puts(&b, text);
    return b;
}

static void reply_text(struct http_exchange *x, const char *text)
{
    struct buf b = text_of(text);
    http_reply(x, 200, "text/plain", &b);
}

static void reply_called(void *exchange)
{
    reply_text(exchange, "called");
}

static void *call_later(void *exchange)
{
    http_call(exchange, reply_called, exchange);
    return NULL;
}

/* Answers what came. */
static void echo(struct http_exchange *x)
{
    struct buf b = {0};
    size_t n;
    const char *body = http_body(x, &n), *color = http_header(x, "X-COLOR");
    buf_printf(&b, "%s %s?%s %s %zu:", http_method(x), http_path(x), http_query(x), color ? color : "-", n);
    buf_append(&b, body, n);
    http_add_header(x, "X-Echo", "yes");
    http_reply(x, 200, "text/plain", &b);
}

static void handle(void *self, struct http_exchange *x)
{
    struct owner *o = self;
    const char *path = http_path(x);
    if (strcmp(path, "/later") == 0) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, call_later, x) == 0, "pthread_create");
        pthread_detach(thread);
    } else if (strcmp(path, "/keep") == 0 || strcmp(path, "/stream") == 0) {
        if (strcmp(path, "/stream") == 0) {
            http_stream_begin(x, 200, "text/event-stream");
        }
        pthread_mutex_lock(&o->lock);
        o->kept = x;
        pthread_cond_broadcast(&o->changed);
        pthread_mutex_unlock(&o->lock);
    } else {
        echo(x);
    }
}

static bool is_open(void *self, const char *path)
{
    (void)self;
    return strcmp(path, "/open") == 0;
}

static const char *describe_error(void *self, struct buf *out, const char *path, int status,
                                  const char *message)
{
    (void)self;
    buf_printf(out, "{\"path\": \"%s\", \"status\": %d, \"message\": \"%s\"}", path, status, message);
    return "application/json";
}

static void ended(void *self, const struct http_exchange *x, int status, size_t n_bytes, double seconds)
{
    struct owner *o = self;
    EXPECT(http_path(x) != NULL && n_bytes < 1 << 30 && seconds >= 0, "ended %d", status);
    pthread_mutex_lock(&o->lock);
    o->n_ended++;
    o->last_status = status;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static struct http_options small_options(void)
{
    struct http_options o = http_defaults();
    o.port = 0;
    o.n_threads = 2;
    return o;
}

static void start(struct owner *o, const struct http_options *options)
{
    *o = (struct owner){0};
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    struct http_handler handler = {handle, is_open, describe_error, ended, o};
    EXPECT_OK(http_server_create(&o->server, options, &handler));
}

static void stop(struct owner *o)
{
    http_server_close_door(o->server);
    EXPECT(http_server_wait(o->server, 60), "%lld exchanges", (long long)http_server_exchanges(o->server));
    http_server_destroy(o->server);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
}

static struct http_exchange *take_kept(struct owner *o)
{
    pthread_mutex_lock(&o->lock);
    while (o->kept == NULL) {
        pthread_cond_wait(&o->changed, &o->lock);
    }
    struct http_exchange *x = o->kept;
    o->kept = NULL;
    pthread_mutex_unlock(&o->lock);
    return x;
}

static void wait_for_ended(struct owner *o, int n)
{
    pthread_mutex_lock(&o->lock);
    while (o->n_ended < n) {
        pthread_cond_wait(&o->changed, &o->lock);
    }
    pthread_mutex_unlock(&o->lock);
}

/* The event for which a test waits; its time limit is the test's. */
static void wait_until_left(const struct http_exchange *x)
{
    while (!http_has_left(x)) {
        sched_yield();
    }
}

static void expect_answer(int port, const char *request, int status, const char *part)
{
    struct buf answer = {0};
    int got = raw_ask(port, request, &answer);
    EXPECT(got == status && strstr(buf_text(&answer), part) != NULL, "%d, not %d with '%s': %s", got, status,
           part, buf_text(&answer));
    buf_fini(&answer);
}

static void test_answers(void)
{
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    int port = http_server_port(o.server);
    expect_answer(port, "GET /a%20b?c=%20d HTTP/1.1\r\nx-Color:  red \r\n" LAST, 200,
                  "GET /a b?c=%20d red 0:");
    expect_answer(port, "GET http://localhost/a?b HTTP/1.1\r\n" LAST, 200, "GET /a?b - 0:");
    expect_answer(port, POST("/echo", "5") LAST "hello", 200, "X-Echo: yes");
    expect_answer(port, POST("/echo", "5") LAST "hello", 200, "POST /echo? - 5:hello");
    expect_answer(port,
                  "POST /echo HTTP/1.1\r\nContent-Type: application/json; charset=utf-8\r\n"
                  "Transfer-Encoding: chunked\r\n" LAST "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n",
                  200, "POST /echo? - 5:hello");
    expect_answer(port, "GET /later HTTP/1.1\r\n" LAST, 200, "\r\n\r\ncalled");
    expect_answer(port, "GET /a HTTP/1.0\r\n\r\n", 200, "GET /a? - 0:");
    struct buf answer = {0};
    raw_ask(port, "HEAD /a HTTP/1.1\r\n" LAST, &answer);
    const char *end = strstr(buf_text(&answer), "\r\n\r\n");
    EXPECT(end != NULL && end[4] == '\0' && strstr(buf_text(&answer), "Content-Length: 13") != NULL, "%s",
           buf_text(&answer));
    EXPECT(strstr(buf_text(&answer), "\r\nDate: ") != NULL, "%s", buf_text(&answer));
    buf_fini(&answer);
    wait_for_ended(&o, 8);
    stop(&o);
}

/* Several requests on one connection, some sent before the last was answered. */
static void test_kept_connection(void)
{
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    struct buf answer = {0};
    int fd = raw_connect(http_server_port(o.server));
    for (int i = 0; i < 3; i++) {
        raw_puts(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
        buf_clear(&answer);
        raw_read(fd, &answer, "called");
    }
    raw_puts(fd, POST("/1", "2") HOST "\r\nab" POST("/2", "2") HOST "\r\ncd"
                                                                    "GET /3 HTTP/1.1\r\n" LAST);
    buf_clear(&answer);
    raw_read(fd, &answer, NULL);
    const char *first = strstr(buf_text(&answer), "POST /1? - 2:ab"),
               *second = strstr(buf_text(&answer), "POST /2? - 2:cd");
    EXPECT(first != NULL && second > first && strstr(second, "GET /3? - 0:") != NULL, "%s",
           buf_text(&answer));
    close(fd);
    buf_fini(&answer);
    wait_for_ended(&o, 6);
    stop(&o);
}

static void test_stream(void)
{
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    for (int is_whole = 0; is_whole < 2; is_whole++) {
        struct buf answer = {0};
        int fd = raw_connect(http_server_port(o.server));
        raw_puts(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
        struct http_exchange *x = take_kept(&o);
        http_stream_write(x, "data: 1\n\n", 9);
        raw_read(fd, &answer, "data: 1\n\n");
        http_stream_write(x, "data: 2\n\n", 9);
        raw_read(fd, &answer, "data: 2\n\n");
        EXPECT(strstr(buf_text(&answer), "text/event-stream") != NULL, "%s", buf_text(&answer));
        http_stream_end(x, is_whole);
        if (is_whole) {
            raw_read(fd, &answer, "0\r\n\r\n");
        } else {
            raw_read(fd, &answer, NULL);
            EXPECT(strstr(buf_text(&answer), "0\r\n\r\n") == NULL, "a broken stream ended as a whole one");
        }
        close(fd);
        buf_fini(&answer);
    }
    stop(&o);
}

static void test_client_leaves(void)
{
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    for (int half = 0; half < 2; half++) {
        int fd = raw_connect(http_server_port(o.server));
        raw_puts(fd, "GET /keep HTTP/1.1\r\n" HOST "\r\n");
        struct http_exchange *x = take_kept(&o);
        EXPECT(!http_has_left(x), "it waits");
        if (half) {
            shutdown(fd, SHUT_WR);
        } else {
            close(fd);
        }
        wait_until_left(x);
        reply_text(x, "for nobody");
        wait_for_ended(&o, half + 1);
        if (half) {
            close(fd);
        }
    }
    int fd = raw_connect(http_server_port(o.server));
    struct buf answer = {0};
    raw_puts(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    struct http_exchange *x = take_kept(&o);
    http_stream_write(x, "data: 1\n\n", 9);
    raw_read(fd, &answer, "data: 1\n\n");
    close(fd);
    wait_until_left(x);
    http_stream_write(x, "data: 2\n\n", 9);
    http_stream_end(x, true);
    buf_fini(&answer);
    stop(&o);
    EXPECT(o.n_ended == 3, "%d ended", o.n_ended);
}

/* A client that never reads: what waits for it is bounded. */
static void test_client_that_never_reads(void)
{
    struct owner o;
    struct http_options options = small_options();
    options.max_unread_bytes = 100000;
    start(&o, &options);
    int fd = raw_connect(http_server_port(o.server));
    raw_puts(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    struct http_exchange *x = take_kept(&o);
    static const char block[5000];
    while (!http_has_left(x)) {
        http_stream_write(x, block, sizeof block);
    }
    http_stream_end(x, true);
    stop(&o);
    close(fd);
}

int main(void)
{
    struct http_server *none;
    struct http_options options = small_options();
    struct http_handler handler = {.describe_error = describe_error};
    struct status s = http_server_create(&none, &options, &handler);
    if (s.code == STATUS_UNAVAILABLE) {
        test_skip("microhttpd", TEST_NO_MICROHTTPD);
    }
    EXPECT_OK(s);
    http_server_destroy(none);
    test_answers();
    test_kept_connection();
    test_stream();
    test_client_leaves();
    test_client_that_never_reads();
    return 0;
}
