/* A server and clients of bytes: what is answered, at once or later, whole or as a stream; clients that
 * leave, do not read, are slow, or ask for too much; and how the server ends. */
#include "raw_client.h"

#include "http/http.h"

#include <pthread.h>
#include <sched.h>

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

static bool is_open(void *self, const char *method, const char *path)
{
    (void)self, (void)method;
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

/* ---- limits ---- */

static void expect_closed(int fd, int status)
{
    struct buf answer = {0};
    raw_read(fd, &answer, NULL);
    EXPECT(raw_status(buf_text(&answer)) == status, "not %d: %s", status, buf_text(&answer));
    close(fd);
    buf_fini(&answer);
}

/* A body over the limit is refused before it is read, and its client, which sends on, sees the answer. */
static void test_long_bodies(void)
{
    struct owner o;
    struct http_options options = small_options();
    options.max_body_bytes = 1000;
    options.max_all_body_bytes = 1010;
    start(&o, &options);
    int port = http_server_port(o.server);
    static char body[3000000];
    memset(body, 'a', sizeof body);
    int fd = raw_connect(port);
    raw_puts(fd, POST("/echo", "3000000") HOST "\r\n");
    raw_send(fd, body, sizeof body);
    expect_closed(fd, 413);
    expect_answer(port, POST("/echo", "1001") HOST "Expect: 100-continue\r\n\r\n", 413,
                  "1001 bytes, the limit is 1000");
    fd = raw_connect(port);
    raw_puts(fd,
             "POST /echo HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n" HOST
             "\r\n2dc6c0\r\n");
    raw_send(fd, body, sizeof body);
    expect_closed(fd, 413);

    fd = raw_connect(port);
    raw_puts(fd, POST("/keep", "11") HOST "\r\n12345678901");
    struct http_exchange *x = take_kept(&o);
    body[1000] = '\0';
    struct buf request = {0}, answer = {0};
    buf_printf(&request, POST("/echo", "1000") LAST "%s", body);
    int status = raw_ask(port, buf_text(&request), &answer);
    EXPECT(status == 503 && strstr(buf_text(&answer), "Retry-After: 1\r\n") != NULL, "%s", buf_text(&answer));
    reply_text(x, "done");
    EXPECT(http_server_wait(o.server, 60), "it has ended");
    EXPECT(raw_ask(port, buf_text(&request), &answer) == 200, "%s", buf_text(&answer));
    close(fd);
    buf_fini(&request);
    buf_fini(&answer);
    stop(&o);
}

static void test_expectation(void)
{
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    struct buf answer = {0};
    int fd = raw_connect(http_server_port(o.server));
    raw_puts(fd, POST("/echo", "5") HOST "Expect: 100-Continue\r\n\r\n");
    raw_read(fd, &answer, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_puts(fd, "hello");
    raw_read(fd, &answer, "5:hello");
    close(fd);
    fd = raw_connect(http_server_port(o.server));
    raw_puts(fd, "POST /echo HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 5\r\nExpect: "
                 "100-continue\r\n\r\nhello");
    buf_clear(&answer);
    raw_read(fd, &answer, NULL);
    EXPECT(strstr(buf_text(&answer), "5:hello") != NULL && strstr(buf_text(&answer), " 100 ") == NULL, "%s",
           buf_text(&answer));
    close(fd);
    buf_fini(&answer);
    stop(&o);
}

/* A head, a body and a pause that last too long; each limit is so short that the event comes soon, on a busy
 * machine even before the first line is read, and then without a word. */
static void test_slow_clients(void)
{
    static const char *const slow[] = {
        "GET / HTTP/1.1\r\nHost: local",
        POST("/echo", "5") HOST "\r\nhell",
        POST("/echo", "5") HOST "Expect: 100-continue\r\n\r\n",
    };
    struct owner o;
    struct http_options options = small_options();
    options.request_read_timeout_s = 0.05;
    start(&o, &options);
    int port = http_server_port(o.server);
    struct buf answer = {0};
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++) {
        while (raw_ask(port, slow[i], &answer) == 0) {
        }
        EXPECT(strstr(buf_text(&answer), "HTTP/1.1 408 Request Timeout\r\n") != NULL, "%s",
               buf_text(&answer));
    }
    EXPECT(raw_ask(port, "", &answer) == 0 && answer.n == 0, "%s", buf_text(&answer));
    EXPECT(raw_ask(port, "GET / HTTP/1.1\rHost: localhost\r\r", &answer) == 0, "%s", buf_text(&answer));
    stop(&o);
    EXPECT(o.n_ended == 0 || o.last_status == 408, "%d ended, the last with %d", o.n_ended, o.last_status);
    options.request_read_timeout_s = 30;
    options.idle_timeout_s = 0.05;
    start(&o, &options);
    EXPECT(raw_ask(http_server_port(o.server), "GET /a HTTP/1.1\r\n" HOST "\r\n", &answer) == 200, "%s",
           buf_text(&answer));
    buf_fini(&answer);
    stop(&o);
}

static void test_connections_of_an_address(void)
{
    struct owner o;
    struct http_options options = small_options();
    options.max_connections_per_address = 1;
    start(&o, &options);
    int port = http_server_port(o.server);
    struct buf answer = {0};
    int first = raw_connect(port);
    raw_puts(first, "GET /a HTTP/1.1\r\n" HOST "\r\n");
    raw_read(first, &answer, "GET /a? - 0:");
    EXPECT(raw_ask(port, "GET /a HTTP/1.1\r\n" LAST, &answer) == 0, "a second connection was served");
    close(first);
    buf_fini(&answer);
    stop(&o);
}

/* ---- who may ask ---- */

static void test_keys(void)
{
    static const char *const keys[] = {"secret-1", "secret-2"};
    struct owner o;
    struct http_options options = small_options();
    options.keys = keys;
    options.n_keys = 2;
    start(&o, &options);
    int port = http_server_port(o.server);
    expect_answer(port, "GET /a HTTP/1.1\r\n" LAST, 401, "WWW-Authenticate: Bearer\r\n");
    expect_answer(port, "GET /a HTTP/1.1\r\nAuthorization: Bearer secret-1\r\n" LAST, 200, "GET /a");
    expect_answer(port, "GET /a HTTP/1.1\r\nauthorization: bearer secret-2\r\n" LAST, 200, "GET /a");
    expect_answer(port, "GET /a HTTP/1.1\r\nX-Api-Key: secret-2\r\n" LAST, 200, "GET /a");
    expect_answer(port, "GET /a HTTP/1.1\r\nX-Api-Key: secret-\r\n" LAST, 401, "\"status\": 401");
    expect_answer(port, "GET /a HTTP/1.1\r\nX-Api-Key: secret-11\r\n" LAST, 401, "Bearer KEY");
    expect_answer(port, "GET /a HTTP/1.1\r\nX-Api-Key: \r\n" LAST, 401, "Bearer KEY");
    expect_answer(port, "GET /a HTTP/1.1\r\nAuthorization: Basic secret-1\r\n" LAST, 401, "Bearer KEY");
    expect_answer(port, "GET /open HTTP/1.1\r\n" LAST, 200, "GET /open");
    expect_answer(port, "OPTIONS /a HTTP/1.1\r\n" LAST, 204, "Allow: GET, HEAD, POST, OPTIONS");
    stop(&o);
}

static void test_other_pages(void)
{
    static const char *const origins[] = {"https://page.example"};
    static const char *const hosts[] = {"kiln.example", "localhost:8080"};
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    int port = http_server_port(o.server);
    expect_answer(port, "GET /a HTTP/1.1\r\nOrigin: http://localhost\r\n" LAST, 200, "GET /a");
    expect_answer(port, "GET /a HTTP/1.1\r\nOrigin: http://localhost:81\r\n" LAST, 403, "localhost:81");
    expect_answer(port, "GET /a HTTP/1.1\r\nOrigin: null\r\n" LAST, 403, "null");
    expect_answer(
        port,
        "OPTIONS /a HTTP/1.1\r\nOrigin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n" LAST,
        403, "page.example");
    expect_answer(port, "GET /a HTTP/1.1\r\nHost: kiln.example\r\nConnection: close\r\n\r\n", 403,
                  "kiln.example");
    expect_answer(port, "GET /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\nConnection: close\r\n\r\n", 200, "GET /a");
    stop(&o);
    options.origins = origins;
    options.n_origins = 1;
    options.hosts = hosts;
    options.n_hosts = 2;
    start(&o, &options);
    port = http_server_port(o.server);
#define KILN "Host: kiln.example:90\r\nConnection: close\r\n\r\n"
    expect_answer(port, "GET /a HTTP/1.1\r\nOrigin: https://page.example\r\n" KILN, 200,
                  "Access-Control-Allow-Origin: https://page.example\r\nVary: Origin\r\n");
    expect_answer(port, "POST /a HTTP/1.1\r\nOrigin: https://page.example\r\n" KILN, 415,
                  "Access-Control-Allow-Origin: https://page.example\r\n");
    expect_answer(port,
                  "OPTIONS /a HTTP/1.1\r\nOrigin: https://page.example\r\nAccess-Control-Request-Method: "
                  "POST\r\nAccess-Control-Request-Headers: authorization, content-type\r\n" KILN,
                  204, "Access-Control-Allow-Headers: authorization, content-type\r\n");
    expect_answer(port, "GET /a HTTP/1.1\r\nOrigin: https://page.example.evil\r\n" KILN, 403,
                  "page.example.evil");
    expect_answer(port, "GET /a HTTP/1.1\r\n" LAST, 403, "localhost");
    expect_answer(port, "GET /a HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n", 200,
                  "GET /a");
    stop(&o);
}

/* ---- addresses, and the end ---- */

static int connect_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect: %s", strerror(errno));
    return fd;
}

static void test_addresses(void)
{
    struct owner o;
    struct http_options options = small_options();
    struct http_handler handler = {.handle = handle, .describe_error = describe_error};
    struct http_server *second;
    char dir[] = "/tmp/kiln-http-XXXXXX", path[64];
    EXPECT(mkdtemp(dir) != NULL, "mkdtemp");
    snprintf(path, sizeof path, "%s/socket", dir);
    options.unix_socket = path;
    start(&o, &options);
    EXPECT_ERROR(http_server_create(&second, &options, &handler), STATUS_USAGE, "listens on");
    EXPECT(http_server_port(o.server) == 0, "a port");
    int fd = connect_unix(path);
    raw_puts(fd, "GET /a HTTP/1.1\r\n" LAST);
    expect_closed(fd, 200);
    stop(&o);
    EXPECT(access(path, F_OK) != 0, "the socket is left behind");
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    EXPECT(bind(dead, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    close(dead);
    start(&o, &options);
    stop(&o);
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL && fclose(f) == 0, "fopen");
    EXPECT_ERROR(http_server_create(&second, &options, &handler), STATUS_USAGE, "is no socket");
    EXPECT(unlink(path) == 0 && rmdir(dir) == 0, "unlink");

    options = small_options();
    start(&o, &options);
    options.port = http_server_port(o.server);
    EXPECT_ERROR(http_server_create(&second, &options, &handler), STATUS_USAGE, "another program has it");
    stop(&o);
    options.host = "no.address";
    EXPECT_ERROR(http_server_create(&second, &options, &handler), STATUS_USAGE, "no.address");
    options.host = "192.0.2.1";
    EXPECT_ERROR(http_server_create(&second, &options, &handler), STATUS_USAGE, "no such address");

    struct sockaddr_in any = {.sin_family = AF_INET};
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    options = small_options();
    options.socket = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(bind(options.socket, (struct sockaddr *)&any, sizeof any) == 0, "bind");
    EXPECT_ERROR(http_server_create(&second, &options, &handler), STATUS_USAGE,
                 "no stream socket that listens");
    EXPECT(listen(options.socket, 5) == 0, "listen");
    start(&o, &options);
    expect_answer(http_server_port(o.server), "GET /a HTTP/1.1\r\n" LAST, 200, "GET /a");
    stop(&o);
}

/* The door is closed: idle connections end, what is being answered goes on, and is the last. */
static void test_end(void)
{
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    int port = http_server_port(o.server);
    struct buf answer = {0};
    int idle = raw_connect(port), waits = raw_connect(port);
    raw_puts(idle, "GET /a HTTP/1.1\r\n" HOST "\r\n");
    raw_read(idle, &answer, "GET /a? - 0:");
    raw_puts(waits, "GET /keep HTTP/1.1\r\n" HOST "\r\n");
    struct http_exchange *x = take_kept(&o);
    wait_for_ended(&o, 1);
    EXPECT(http_server_exchanges(o.server) == 1 && !http_server_wait(o.server, 0), "one waits");
    http_server_close_door(o.server);
    buf_clear(&answer);
    raw_read(idle, &answer, NULL);
    EXPECT(answer.n == 0, "%s", buf_text(&answer));
    reply_text(x, "the last");
    raw_read(waits, &answer, NULL);
    EXPECT(strstr(buf_text(&answer), "Connection: close\r\n") != NULL &&
               strstr(buf_text(&answer), "the last") != NULL,
           "%s", buf_text(&answer));
    close(idle);
    close(waits);
    buf_fini(&answer);
    stop(&o);
}

/* Many threads ask at once, and some leave before they are answered. */
static void *ask_often(void *port)
{
    struct buf answer = {0};
    for (int i = 0; i < 50; i++) {
        if (i % 5 == 4) {
            int fd = raw_connect(*(int *)port);
            raw_puts(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
            close(fd);
        } else {
            int status = raw_ask(*(int *)port,
                                 i % 2 ? "GET /later HTTP/1.1\r\n" LAST : POST("/e", "2") LAST "ab", &answer);
            EXPECT(status == 200, "%s", buf_text(&answer));
        }
    }
    buf_fini(&answer);
    return NULL;
}

static void test_many(void)
{
    struct owner o;
    struct http_options options = small_options();
    start(&o, &options);
    int port = http_server_port(o.server);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        EXPECT(pthread_create(&threads[i], NULL, ask_often, &port) == 0, "pthread_create");
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    stop(&o);
    EXPECT(o.n_ended >= 8 * 40, "%d ended", o.n_ended);
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
    test_long_bodies();
    test_expectation();
    test_slow_clients();
    test_connections_of_an_address();
    test_keys();
    test_other_pages();
    test_addresses();
    test_end();
    test_many();
    return 0;
}
