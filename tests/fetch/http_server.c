#include "http_server.h"

#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const names[N_HABITS] = {
    [HABIT_NONE] = "",
    [HABIT_CUT] = "cut",
    [HABIT_NO_RANGE] = "no_range",
    [HABIT_NEVER_ALL] = "never_all",
    [HABIT_CHANGES] = "changes",
    [HABIT_CHANGES_MUTE] = "changes_mute",
    [HABIT_CHANGES_BLIND] = "changes_blind",
    [HABIT_LONGER] = "longer",
    [HABIT_SHORTER] = "shorter",
    [HABIT_ENORMOUS] = "enormous",
    [HABIT_TOO_MUCH] = "too_much",
    [HABIT_OTHER_PART] = "other_part",
    [HABIT_NO_SUCH_PART] = "no_such_part",
    [HABIT_WRONG] = "wrong",
    [HABIT_NO_LENGTH] = "no_length",
    [HABIT_CHUNKED] = "chunked",
    [HABIT_CHUNKED_CUT] = "chunked_cut",
    [HABIT_REDIRECT] = "redirect",
    [HABIT_REDIRECT_LOOP] = "redirect_loop",
    [HABIT_REDIRECT_FILE] = "redirect_file",
    [HABIT_GONE] = "gone",
    [HABIT_BUSY] = "busy",
    [HABIT_CLOSED] = "closed",
    [HABIT_HANGS] = "hangs",
    [HABIT_SILENT] = "silent",
    [HABIT_DEAF] = "deaf",
    [HABIT_VANISH] = "vanish",
};

const char *http_server_habit_name(enum habit habit)
{
    return names[habit];
}

struct request {
    char path[512], if_range[256];
    int64_t from;
    enum habit habit;
    int code;      /* to answer the first request by; 0: the file */
    bool is_first; /* of its path and habit, since the counter was set to 0 */
};

/* ---- sockets ---- */

static void send_all(int fd, const void *bytes, int64_t n)
{
    const char *p = bytes;
    for (ssize_t sent; n > 0 && (sent = send(fd, p, (size_t)n, MSG_NOSIGNAL)) > 0; n -= sent) {
        p += sent;
    }
}

static void send_text(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void send_text(int fd, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    send_all(fd, text, (int64_t)strlen(text));
}

/* Until the other side has given up. */
static void wait_for_close(int fd)
{
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, -1) > 0 && recv(fd, &byte, 1, 0) > 0) {
    }
}

/* ---- requests ---- */

/* A proxy is asked for a whole URL, of which we serve the path. */
static void strip_host(struct request *r)
{
    const char *path = strncmp(r->path, "http://", 7) == 0 ? strchr(r->path + 7, '/') : NULL;
    if (path != NULL) {
        memmove(r->path, path, strlen(path) + 1);
    }
}

static void find_habit(struct request *r)
{
    int n_code = 0;
    if (sscanf(r->path, "/~code%3d%n", &r->code, &n_code) == 1) {
        memmove(r->path, r->path + n_code, strlen(r->path + n_code) + 1);
    }
    for (int i = 1; i < N_HABITS && r->path[1] == '~'; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(r->path + 2, names[i], n) == 0 && r->path[2 + n] == '/') {
            r->habit = (enum habit)i;
            memmove(r->path, r->path + 2 + n, strlen(r->path + 2 + n) + 1);
        }
    }
}

static bool is_first_request(struct http_server *s, const char *path)
{
    s->n_seen = s->n_requests++ == 0 ? 0 : s->n_seen;
    for (int i = 0; i < s->n_seen; i++) {
        if (strcmp(s->seen[i], path) == 0) {
            return false;
        }
    }
    EXPECT(s->n_seen < (int)(sizeof s->seen / sizeof s->seen[0]), "more paths than the server can remember");
    strcpy(s->seen[s->n_seen++], path);
    return true;
}

static bool read_request(struct http_server *s, int fd, struct request *r)
{
    char text[8192] = "", *save = NULL;
    *r = (struct request){0};
    for (size_t n = 0; strstr(text, "\r\n\r\n") == NULL;) {
        ssize_t got = n < sizeof text - 1 ? recv(fd, text + n, sizeof text - 1 - n, 0) : 0;
        if (got <= 0) {
            return false;
        }
        n += (size_t)got;
        text[n] = '\0';
    }
    for (char *line = strtok_r(text, "\r\n", &save); line != NULL; line = strtok_r(NULL, "\r\n", &save)) {
        if (sscanf(line, "GET %511s", r->path) == 1) {
            strip_host(r);
            r->is_first = is_first_request(s, r->path);
            find_habit(r);
        } else if (strncasecmp(line, "Range: bytes=", 13) == 0) {
            r->from = strtoll(line + 13, NULL, 10);
        } else if (strncasecmp(line, "If-Range: ", 10) == 0) {
            snprintf(r->if_range, sizeof r->if_range, "%s", line + 10);
        }
    }
    return r->path[0] == '/';
}

/* ---- answers ---- */

struct body {
    unsigned char *bytes;
    int64_t n;
};

static struct body read_body(const char *root, const char *path)
{
    char name[1200];
    struct body b = {0};
    snprintf(name, sizeof name, "%s%s", root, path);
    if (name[strlen(name) - 1] == '/') { /* as worksheets.codalab.org has it */
        strcat(name, "index");
    }
    FILE *file = fopen(name, "rb");
    if (file == NULL) {
        return b;
    }
    fseek(file, 0, SEEK_END);
    b.n = ftell(file);
    rewind(file);
    b.bytes = malloc((size_t)b.n + 1);
    EXPECT(b.bytes != NULL && fread(b.bytes, 1, (size_t)b.n, file) == (size_t)b.n, "%s cannot be read", name);
    fclose(file);
    return b;
}

static bool redirect(int fd, const struct request *r)
{
    static const char form[] =
        "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s%s\r\nConnection: close\r\n\r\n";
    switch (r->habit) {
    case HABIT_REDIRECT: send_text(fd, form, "", r->path); return true;
    case HABIT_REDIRECT_LOOP: send_text(fd, form, "/~redirect_loop", r->path); return true;
    case HABIT_REDIRECT_FILE: send_text(fd, form, "file:///etc/passwd", ""); return true;
    default: return false;
    }
}

static bool refuse(int fd, const struct request *r, const struct body *b)
{
    if (r->habit == HABIT_GONE || b->bytes == NULL) {
        send_text(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\ngone\n");
        return true;
    }
    if (r->code != 0 && r->is_first) {
        send_text(fd, "HTTP/1.1 %d Code\r\nContent-Length: 0\r\n\r\n", r->code);
        return true;
    }
    if (r->habit == HABIT_CLOSED || (r->habit == HABIT_BUSY && r->is_first)) {
        send_text(fd, "HTTP/1.1 503 Busy\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
                  r->habit == HABIT_BUSY ? "1" : "86400");
        return true;
    }
    if (r->habit == HABIT_NO_SUCH_PART && r->from > 0) {
        send_text(fd, "HTTP/1.1 416 No\r\nContent-Range: bytes */%lld\r\nContent-Length: 0\r\n\r\n",
                  (long long)b->n);
        return true;
    }
    return false;
}

/* Without a length: chunks, or everything until the end of the connection. */
static bool send_without_length(int fd, const struct request *r, const struct body *b)
{
    bool is_chunked = r->habit == HABIT_CHUNKED || r->habit == HABIT_CHUNKED_CUT;
    if (!is_chunked && r->habit != HABIT_NO_LENGTH) {
        return false;
    }
    send_text(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n%s\r\n",
              is_chunked ? "Transfer-Encoding: chunked\r\n" : "");
    if (is_chunked) {
        send_text(fd, "%llx\r\n", (long long)b->n);
    }
    send_all(fd, b->bytes, b->n);
    if (is_chunked && !(r->habit == HABIT_CHUNKED_CUT && r->is_first)) {
        send_text(fd, "\r\n0\r\n\r\n");
    }
    return true;
}

static bool is_cut(const struct request *r, int64_t left)
{
    static const bool first[N_HABITS] = {
        [HABIT_HANGS] = true,        [HABIT_NO_RANGE] = true,      [HABIT_CHANGES] = true,
        [HABIT_CHANGES_MUTE] = true, [HABIT_CHANGES_BLIND] = true, [HABIT_TOO_MUCH] = true,
        [HABIT_OTHER_PART] = true,   [HABIT_NO_SUCH_PART] = true,
    };
    return r->habit == HABIT_NEVER_ALL || r->habit == HABIT_SILENT || r->habit == HABIT_VANISH ||
           (r->habit == HABIT_CUT && left > 4096) || (first[r->habit] && r->is_first);
}

/* The bytes and the ETag after a change. */
static const char *change(const struct request *r, struct body *b)
{
    bool changes =
        r->habit == HABIT_CHANGES || r->habit == HABIT_CHANGES_MUTE || r->habit == HABIT_CHANGES_BLIND;
    for (int64_t i = 0; i < b->n && changes && !r->is_first; i++) {
        b->bytes[i] ^= 0x55;
    }
    if (r->habit == HABIT_WRONG) {
        b->bytes[b->n / 3] ^= 0x55;
    }
    return (r->habit == HABIT_CHANGES || r->habit == HABIT_CHANGES_BLIND) && !r->is_first ? "\"second\""
                                                                                          : "\"first\"";
}

static void send_file(int fd, const struct request *r, struct body *b)
{
    const char *etag = change(r, b);
    bool part = r->from > 0 && r->from <= b->n && r->habit != HABIT_NO_RANGE && r->habit != HABIT_NEVER_ALL &&
                (r->if_range[0] == '\0' || strcmp(r->if_range, etag) == 0 || r->habit == HABIT_CHANGES_BLIND);
    int64_t from = part ? r->from : 0, left = b->n - from;
    int64_t lie = r->habit == HABIT_LONGER ? 100 : r->habit == HABIT_SHORTER ? -100 : 0;
    lie = r->habit == HABIT_ENORMOUS ? INT64_C(1) << 58 : lie;
    bool is_odd = part && (r->habit == HABIT_OTHER_PART || r->habit == HABIT_TOO_MUCH);
    send_text(fd, "HTTP/1.1 %s\r\nETag: %s\r\nConnection: close\r\n", part ? "206 Partial Content" : "200 OK",
              etag);
    if (part) {
        send_text(fd, "Content-Range: bytes %lld-%lld/%lld\r\n",
                  (long long)(from - (r->habit == HABIT_OTHER_PART ? 7 : 0)), (long long)(b->n - 1),
                  (long long)(b->n + lie));
    }
    send_text(fd, "Content-Length: %lld\r\n\r\n", (long long)(left + lie + (is_odd ? 7 : 0)));
    bool cut = is_cut(r, left), is_mute = r->habit == HABIT_SILENT && part;
    send_all(fd, b->bytes + from - (is_odd ? 7 : 0), is_mute ? 0 : cut ? left / 2 : left + (is_odd ? 7 : 0));
}

static void answer(struct http_server *s, int fd)
{
    struct request r;
    if (!read_request(s, fd, &r)) {
        return;
    }
    s->from = r.from;
    if (r.habit == HABIT_DEAF) {
        wait_for_close(fd);
        return;
    }
    struct body b = read_body(s->root, r.path);
    if (!redirect(fd, &r) && !refuse(fd, &r, &b) && !send_without_length(fd, &r, &b)) {
        send_file(fd, &r, &b);
    }
    if (r.habit == HABIT_SILENT || (r.habit == HABIT_HANGS && r.is_first)) {
        wait_for_close(fd);
    } else if (r.habit == HABIT_VANISH) {
        shutdown(s->listener, SHUT_RDWR);
    }
    free(b.bytes);
}

/* ---- the server ---- */

void http_server_open(struct http_server *s, const char *root)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    *s = (struct http_server){.listener = socket(AF_INET, SOCK_STREAM, 0)};
    snprintf(s->root, sizeof s->root, "%s", root);
    EXPECT(s->listener >= 0 && bind(s->listener, (struct sockaddr *)&at, n) == 0 &&
               listen(s->listener, 16) == 0 && getsockname(s->listener, (struct sockaddr *)&at, &n) == 0,
           "no server can listen at 127.0.0.1");
    s->port = ntohs(at.sin_port);
}

void *http_server_serve(void *server)
{
    struct http_server *s = server;
    for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0;) {
        answer(s, fd);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    close(s->listener);
    return NULL;
}

void http_server_begin(struct http_server *s, const char *root)
{
    http_server_open(s, root);
    EXPECT(pthread_create(&s->thread, NULL, http_server_serve, s) == 0, "no thread for the server");
}

void http_server_end(struct http_server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
}
