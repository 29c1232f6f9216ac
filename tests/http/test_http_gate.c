/* Raw requests that two programs may read in two ways, or that HTTP/1.1 says how to answer: the rows of
 * Http11Probe and of RFC 9112, each with the statuses that are right (0: closed without an answer).  The
 * server closes after each; a request that is hidden in another is never answered. */
#include "raw_client.h"

#include "http/http.h"
#include "http/http_gate.h"

#include <netinet/tcp.h>

#define HOST              "Host: localhost\r\n"
#define LAST              HOST "Connection: close\r\n\r\n"
#define JSON              "Content-Type: application/json\r\n"
#define HIDDEN            "GET /hidden HTTP/1.1\r\n" HOST "\r\n"
#define POST_WITH(fields) "POST /p HTTP/1.1\r\n" HOST JSON fields
#define CHUNKED(chunks)   POST_WITH("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n") chunks

static const struct row {
    const char *name, *bytes;
    int statuses[4]; /* -1: no more */
    int n_bytes;     /* 0: up to the NUL */
} rows[] = {
#define ROW(name, bytes, ...)                                                                                \
    {                                                                                                        \
        name, bytes, {__VA_ARGS__, -1}, 0                                                                    \
    }
#define ROW_NUL(name, bytes, ...)                                                                            \
    {                                                                                                        \
        name, bytes, {__VA_ARGS__, -1}, sizeof bytes - 1                                                     \
    }
    /* where the body ends */
    ROW("CL twice, different", POST_WITH("Content-Length: 5\r\nContent-Length: 6\r\n\r\n") "hello", 400),
    ROW("CL twice, the same", POST_WITH("Content-Length: 5\r\nContent-Length: 5\r\n\r\n") "hello", 400),
    ROW("CL of two values", POST_WITH("Content-Length: 5, 6\r\n\r\n") "hello", 400),
    ROW("CL of two same values", POST_WITH("Content-Length: 5, 5\r\n\r\n") "hello", 400),
    ROW("CL negative", POST_WITH("Content-Length: -5\r\n\r\n") "hello", 400),
    ROW("CL negative zero", POST_WITH("Content-Length: -0\r\n\r\n"), 400),
    ROW("CL with plus", POST_WITH("Content-Length: +5\r\n\r\n") "hello", 400),
    ROW("CL hexadecimal", POST_WITH("Content-Length: 0x5\r\n\r\n") "hello", 400),
    ROW("CL octal", POST_WITH("Content-Length: 0o5\r\n\r\n") "hello", 400),
    ROW("CL with zeros in front", POST_WITH("Content-Length: 005\r\n\r\n") "hello", 400),
    ROW("CL with a space inside", POST_WITH("Content-Length: 1 0\r\n\r\n") "hello", 400),
    ROW("CL with underscore", POST_WITH("Content-Length: 1_0\r\n\r\n") "hello", 400),
    ROW("CL not a number", POST_WITH("Content-Length: five\r\n\r\n") "hello", 400),
    ROW("CL empty", POST_WITH("Content-Length: \r\n\r\n") "hello", 400),
    ROW("CL of 23 digits", POST_WITH("Content-Length: 99999999999999999999999\r\n\r\n"), 400, 413),
    ROW("CL of a terabyte", POST_WITH("Content-Length: 1099511627776\r\n\r\n"), 413),
    ROW("CL with a blank before the colon", POST_WITH("Content-Length : 5\r\n\r\n") "hello", 400),
    ROW("CL and TE", POST_WITH("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n") "0\r\n\r\n" HIDDEN,
        400),
    ROW("TE and CL", POST_WITH("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n") "0\r\n\r\n" HIDDEN,
        400),
    ROW("TE with a blank before the colon", POST_WITH("Transfer-Encoding : chunked\r\n\r\n") "0\r\n\r\n",
        400),
    ROW("TE unknown", POST_WITH("Transfer-Encoding: xchunked\r\n\r\n") "0\r\n\r\n", 400, 501),
    ROW("TE twice", POST_WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n") "0\r\n\r\n",
        400),
    ROW("TE twice with CL",
        POST_WITH(
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n") "0\r\n"
                                                                                                      "\r\n",
        400),
    ROW("TE empty", POST_WITH("Transfer-Encoding: \r\n\r\n") "0\r\n\r\n", 400),
    ROW("TE with a vertical tab", POST_WITH("Transfer-Encoding: \vchunked\r\n\r\n") "0\r\n\r\n", 400),
    ROW("TE with a form feed", POST_WITH("Transfer-Encoding: \fchunked\r\n\r\n") "0\r\n\r\n", 400),
    ROW_NUL("TE with a NUL", POST_WITH("Transfer-Encoding: chunked\0\r\n\r\n") "0\r\n\r\n", 400),
    ROW_NUL("TE behind a NUL", POST_WITH("Transfer-Encoding: \0chunked\r\n\r\n") "0\r\n\r\n", 400),
    ROW("TE chunked is not last", POST_WITH("Transfer-Encoding: chunked, gzip\r\n\r\n") "0\r\n\r\n", 400),
    ROW("TE gzip, chunked", POST_WITH("Transfer-Encoding: gzip, chunked\r\n\r\n") "0\r\n\r\n", 400, 501),
    ROW("TE identity", POST_WITH("Transfer-Encoding: identity\r\n\r\n") "0\r\n\r\n", 400),
    ROW("TE with a blank at the end", POST_WITH("Transfer-Encoding: chunked \r\n\r\n") "0\r\n\r\n", 400),
    ROW("TE with a comma at the end", POST_WITH("Transfer-Encoding: chunked,\r\n\r\n") "0\r\n\r\n", 400),
    ROW("TE of any case", POST_WITH("Transfer-Encoding: Chunked\r\nConnection: close\r\n\r\n") "0\r\n\r\n",
        200),
    ROW("TE in HTTP/1.0", "POST /p HTTP/1.0\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400),

    /* chunks */
    ROW("chunk size in hexadecimal with prefix", CHUNKED("0x5\r\nhello\r\n0\r\n\r\n"), 400, 0),
    ROW("chunk size with plus", CHUNKED("+5\r\nhello\r\n0\r\n\r\n"), 400, 0),
    ROW("chunk size negative", CHUNKED("-5\r\nhello\r\n0\r\n\r\n"), 400, 0),
    ROW("chunk size with underscore", CHUNKED("1_0\r\nhello\r\n0\r\n\r\n"), 400, 0),
    ROW("chunk size with a space in front", CHUNKED(" 5\r\nhello\r\n0\r\n\r\n"), 400, 0),
    ROW("chunk size with a space behind", CHUNKED("5 \r\nhello\r\n0\r\n\r\n"), 400, 0),
    ROW("chunk size of 17 digits", CHUNKED("10000000000000005\r\nhello\r\n0\r\n\r\n"), 400, 413),
    ROW("chunk size missing", CHUNKED("\r\nhello\r\n0\r\n\r\n"), 400, 0),
    /* libmicrohttpd lets any extension pass, so that the connection ends behind it */
    ROW("chunk with a bare semicolon", CHUNKED("5;\r\nhello\r\n0\r\n\r\n"), 400, 200),
    ROW("chunk that is longer than said", CHUNKED("5\r\nhello!\r\n0\r\n\r\n"), 400, 0),
    ROW("chunk without its end of line", CHUNKED("5\r\nhello0\r\n\r\n"), 400, 0),
    ROW("chunk extension with CR", CHUNKED("5;a\rb\r\nhello\r\n0\r\n\r\n"), 400, 200),
    ROW("chunk extension with a control character", CHUNKED("5;a=\x01\r\nhello\r\n0\r\n\r\n"), 400, 200),
    ROW("chunk extensions", CHUNKED("5;a=b;c=\"d e\"\r\nhello\r\n0\r\n\r\n"), 200),
    ROW("trailers", CHUNKED("5\r\nhello\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\n"), 200),

    /* the host */
    ROW("no Host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
    ROW("no Host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 200),
    ROW("two Hosts", "GET / HTTP/1.1\r\n" HOST LAST, 400),
    ROW("Host empty", "GET / HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n", 400),
    ROW("Host of two values", "GET / HTTP/1.1\r\nHost: localhost, localhost\r\nConnection: close\r\n\r\n",
        400),
    ROW("Host with a path", "GET / HTTP/1.1\r\nHost: localhost/x\r\nConnection: close\r\n\r\n", 400),
    ROW("Host with a user", "GET / HTTP/1.1\r\nHost: me@localhost\r\nConnection: close\r\n\r\n", 400),
    ROW("Host with a port too large", "GET / HTTP/1.1\r\nHost: localhost:99999\r\nConnection: close\r\n\r\n",
        400),
    ROW("Host with a port", "GET / HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n", 200),
    ROW("Host of IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", 200),
    ROW("Host of another site", "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403),

    /* lines */
    ROW("folded header", "GET / HTTP/1.1\r\nX: a\r\n b\r\n" LAST, 400),
    ROW("folded first header", "GET / HTTP/1.1\r\n X: a\r\n" LAST, 400),
    ROW("folded last header", "GET / HTTP/1.1\r\n" HOST "Connection: close\r\nX: a\r\n\tb\r\n\r\n", 400),
    ROW("folded TE", POST_WITH("Transfer-Encoding:\r\n chunked\r\n\r\n") "0\r\n\r\n", 400),
    ROW("header without a colon", "GET / HTTP/1.1\r\nnonsense\r\n" LAST, 400),
    ROW("header without a name", "GET / HTTP/1.1\r\n: x\r\n" LAST, 400),
    ROW("blank before the colon", "GET / HTTP/1.1\r\nX : a\r\n" LAST, 400),
    ROW("name with a bracket", "GET / HTTP/1.1\r\nX(y): a\r\n" LAST, 400),
    ROW("CR in a value", "GET / HTTP/1.1\r\nX: a\rb\r\n" LAST, 400),
    ROW("CR hides a header", "GET / HTTP/1.1\r\nX: a\rTransfer-Encoding: chunked\r\n" LAST, 400),
    ROW("a line ends with CR", "GET / HTTP/1.1\r\nHost: localhost\rConnection: close\r\n\r\n", 400),
    ROW("control character in a value", "GET / HTTP/1.1\r\nX: \x01\r\n" LAST, 400),
    ROW_NUL("NUL in a value", "GET / HTTP/1.1\r\nX: a\0b\r\n" LAST, 400),
    ROW_NUL("NUL in the last value", "GET / HTTP/1.1\r\n" HOST "Connection: close\r\nX: a\0b\r\n\r\n", 400),
    ROW_NUL("NUL at the end of the last value",
            "GET / HTTP/1.1\r\n" HOST "Connection: close\r\nX: a\0\r\n\r\n", 400),
    ROW_NUL("NUL in a name", "GET / HTTP/1.1\r\nX\0: a\r\n" LAST, 400),
    ROW_NUL("NUL in the target", "GET /a\0b HTTP/1.1\r\n" LAST, 400),
    ROW_NUL("NUL in the method", "GE\0T / HTTP/1.1\r\n" LAST, 400, 0, 501),
    ROW_NUL("NUL in the version", "GET / HTTP/1.1\0\r\n" LAST, 400),
    ROW("lines end with LF", "GET / HTTP/1.1\nHost: localhost\nConnection: close\n\n", 400),
    ROW("empty lines in front", "\r\n\r\nGET / HTTP/1.1\r\n" LAST, 200),

    /* the first line */
    ROW("no version", "GET /\r\n" LAST, 400, 505),
    ROW("version of letters", "GET / HTTP/one.one\r\n" LAST, 400),
    ROW("version in small letters", "GET / http/1.1\r\n" LAST, 400),
    ROW("version of one digit", "GET / HTTP/1\r\n" LAST, 400),
    ROW("version of three digits", "GET / HTTP/1.10\r\n" LAST, 400),
    ROW("version 2", "GET / HTTP/2.0\r\n" LAST, 505),
    ROW("version 1.2", "GET / HTTP/1.2\r\n" LAST, 200),
    ROW("another protocol", "GET / HTTPS/1.1\r\n" LAST, 400),
    ROW("two blanks behind the method", "GET  / HTTP/1.1\r\n" LAST, 400),
    ROW("two blanks before the version", "GET /  HTTP/1.1\r\n" LAST, 400),
    ROW("blank at the end", "GET / HTTP/1.1 \r\n" LAST, 400),
    ROW("blank in the target", "GET /a b HTTP/1.1\r\n" LAST, 400),
    ROW("tab in the target", "GET /a\tb HTTP/1.1\r\n" LAST, 400),
    ROW("method with a bracket", "G(T / HTTP/1.1\r\n" LAST, 400),
    ROW("method in small letters", "get / HTTP/1.1\r\n" LAST, 501),
    ROW("method unknown", "BREW / HTTP/1.1\r\n" LAST, 501),
    ROW("TRACE", "TRACE / HTTP/1.1\r\n" LAST, 405, 501),
    ROW("CONNECT", "CONNECT localhost:80 HTTP/1.1\r\n" LAST, 405, 501),
    ROW("star of GET", "GET * HTTP/1.1\r\n" LAST, 400),
    ROW("star of OPTIONS", "OPTIONS * HTTP/1.1\r\n" LAST, 204),
    ROW("OPTIONS", "OPTIONS /a HTTP/1.1\r\n" LAST, 204),
    ROW("target without a slash", "GET a HTTP/1.1\r\n" LAST, 400),
    ROW("target with a fragment", "GET /a#b HTTP/1.1\r\n" LAST, 400),
    ROW("target with a wrong escape", "GET /%2 HTTP/1.1\r\n" LAST, 400),
    ROW("target with an escaped NUL", "GET /a%00b HTTP/1.1\r\n" LAST, 400),
    ROW("absolute target", "GET http://localhost/a HTTP/1.1\r\n" LAST, 200),
    ROW("absolute target of another site", "GET http://evil.example/a HTTP/1.1\r\n" LAST, 403),
    ROW("absolute target with a user", "GET http://me@localhost/a HTTP/1.1\r\n" LAST, 400),

    /* what is asked */
    ROW("Expect unknown", POST_WITH("Expect: more\r\nContent-Length: 5\r\nConnection: close\r\n\r\n") "hello",
        417),
    ROW("POST of a form",
        "POST /p HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 5\r\n" LAST
        "hello",
        415),
    ROW("POST of text", "POST /p HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n" LAST "hello",
        415),
    ROW("POST of no type", "POST /p HTTP/1.1\r\nContent-Length: 5\r\n" LAST "hello", 415),
    ROW("GET with a body", "GET /p HTTP/1.1\r\nContent-Length: 5\r\n" LAST "hello", 200),
    ROW("a request behind", "GET /1 HTTP/1.1\r\n" LAST HIDDEN, 200),
};

static void handle(void *self, struct http_exchange *x)
{
    (void)self;
    struct buf b = {0};
    buf_puts(&b, http_path(x));
    http_reply(x, 200, "text/plain", &b);
}

static const char *describe_error(void *self, struct buf *out, const char *path, int status,
                                  const char *message)
{
    (void)self, (void)path;
    buf_printf(out, "{\"status\": %d, \"message\": \"%s\"}", status, message);
    return "application/json";
}

/* Sends a row in pieces; returns whether its answer is right. */
static bool is_answered(int port, const struct row *row, const char *bytes, size_t n, size_t piece)
{
    int fd = raw_connect(port);
    struct buf answer = {0};
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (size_t at = 0; at < n; at += piece) {
        raw_send(fd, bytes + at, n - at < piece ? n - at : piece);
    }
    raw_read(fd, &answer, NULL);
    close(fd);
    int status = raw_status(buf_text(&answer));
    bool is_right = false;
    for (int i = 0; row->statuses[i] >= 0; i++) {
        is_right = is_right || row->statuses[i] == status;
    }
    bool is_hidden = strstr(buf_text(&answer), "/hidden") != NULL;
    if (!is_right || is_hidden) {
        fprintf(stderr, "%s: %d%s\n%s\n", row->name, status,
                is_hidden ? ", the hidden request was answered" : "", buf_text(&answer));
    }
    buf_fini(&answer);
    return is_right && !is_hidden;
}

static void test_rows(int port)
{
    int n_wrong = 0, n_rows = (int)(sizeof rows / sizeof rows[0]);
    for (int i = 0; i < n_rows; i++) {
        size_t n = rows[i].n_bytes > 0 ? (size_t)rows[i].n_bytes : strlen(rows[i].bytes);
        n_wrong += !is_answered(port, &rows[i], rows[i].bytes, n, n) ||
                   !is_answered(port, &rows[i], rows[i].bytes, n, 1);
    }
    EXPECT(n_wrong == 0, "%d of %d rows are wrong", n_wrong, n_rows);
    printf("%d rows\n", n_rows);
}

/* Heads that fill the memory of a connection, or overflow it. */
static void test_large_heads(int port)
{
    static const struct {
        int n_fields, value_bytes, target_bytes;
        struct row row;
    } heads[] = {
        {200, 50, 1, {"200 fields", NULL, {200, -1}, 0}},
        {2, 9000, 1, {"two long fields", NULL, {200, -1}, 0}},
        {0, 0, 12000, {"long target", NULL, {200, -1}, 0}},
        {1000, 10, 1, {"1000 fields", NULL, {431, -1}, 0}},
        {1, 40000, 1, {"field of 40 kB", NULL, {431, -1}, 0}},
        {0, 0, 40000, {"target of 40 kB", NULL, {414, -1}, 0}},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct buf head = {0};
        buf_printf(&head, "GET /%0*d HTTP/1.1\r\n", heads[i].target_bytes, 0);
        for (int k = 0; k < heads[i].n_fields; k++) {
            buf_printf(&head, "X-%d: %0*d\r\n", k, heads[i].value_bytes, 0);
        }
        buf_puts(&head, LAST);
        EXPECT(is_answered(port, &heads[i].row, head.data, head.n, head.n), "in one piece");
        EXPECT(is_answered(port, &heads[i].row, head.data, head.n, 100), "in pieces");
        buf_fini(&head);
    }
}

int main(void)
{
    struct http_server *server;
    struct http_options options = http_defaults();
    struct http_handler handler = {.handle = handle, .describe_error = describe_error};
    options.port = 0;
    struct status s = http_server_create(&server, &options, &handler);
    if (s.code == STATUS_UNAVAILABLE) {
        test_skip("microhttpd", TEST_NO_MICROHTTPD);
    }
    EXPECT_OK(s);
    test_rows(http_server_port(server));
    test_large_heads(http_server_port(server));
    http_server_destroy(server);
    return 0;
}
