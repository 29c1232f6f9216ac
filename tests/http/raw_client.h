/* raw_client: a client of bytes, for tests of the server. */
#ifndef KILN_TESTS_HTTP_RAW_CLIENT_H
#define KILN_TESTS_HTTP_RAW_CLIENT_H

#include "test.h"

#include "core/buf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEST_NO_MICROHTTPD                                                                                   \
    "this build has no libmicrohttpd; install libmicrohttpd-dev, and build without KILN_MICROHTTPD=OFF"

static inline int raw_connect(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect: %s", strerror(errno));
    return fd;
}

/* The server may have closed the connection already. */
static inline void raw_send(int fd, const char *bytes, size_t n)
{
    for (ssize_t sent; n > 0; bytes += sent, n -= (size_t)sent) {
        sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
    }
}

static inline void raw_puts(int fd, const char *text)
{
    raw_send(fd, text, strlen(text));
}

/* Reads until the text `until` has come, or until the server closes (NULL). */
static inline void raw_read(int fd, struct buf *into, const char *until)
{
    char bytes[4096];
    while (until == NULL || strstr(buf_text(into), until) == NULL) {
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0) {
            EXPECT(until == NULL, "the server closed before '%s', after '%s'", until, buf_text(into));
            return;
        }
        buf_append(into, bytes, (size_t)n);
    }
}

/* The status of an answer, 0 if it has none. */
static inline int raw_status(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

/* Sends a request and reads until the server closes; the request should ask for that. */
static inline int raw_ask(int port, const char *request, struct buf *answer)
{
    int fd = raw_connect(port);
    raw_puts(fd, request);
    buf_clear(answer);
    raw_read(fd, answer, NULL);
    close(fd);
    return raw_status(buf_text(answer));
}

#endif
