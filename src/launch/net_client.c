#define _GNU_SOURCE
#include "launch/net_client.h"

#include "core/bytes.h"
#include "core/clock.h"
#include "launch/net_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const double limit_s = 3, burst_s = 0.15;
enum { N_PINGS = 21, CHUNK = 1 << 18, FIRST_BURST = 1 << 20, LARGEST_BURST = 1 << 28 };

static bool wait_for(int fd, short events, int64_t begin)
{
    struct pollfd p = {.fd = fd, .events = events};
    int left_ms = (int)((limit_s - clock_since_s(begin)) * 1000);
    return left_ms > 0 && poll(&p, 1, left_ms) == 1;
}

static struct status refused(int error, const char *host, int port)
{
    if (error == ECONNREFUSED) {
        return status_error(
            STATUS_UNAVAILABLE,
            "%s refuses port %d: a firewall there rejects it; open the ports above 1024 between the hosts",
            host, port);
    }
    return status_error(STATUS_UNAVAILABLE,
                        "port %d of %s: %s; a firewall drops it, or an interface is down (on it: ip link; ip "
                        "link set dev eth0 up); open the ports above 1024 between the hosts",
                        port, host, error == EINPROGRESS ? "no answer in 3 s" : strerror(error));
}

static struct status connect_to(int *out, const char *host, int port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host, service, &hints, &found);
    if (error != 0) {
        return status_error(STATUS_UNAVAILABLE,
                            "no address for %s (%s): add a line \"ADDRESS %s\" to /etc/hosts here", host,
                            gai_strerror(error), host);
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    error = fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
    freeaddrinfo(found);
    if (error == EINPROGRESS && wait_for(fd, POLLOUT, clock_ns())) {
        socklen_t n = sizeof error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
    }
    if (fd < 0 || error != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return refused(error, host, port);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *out = fd;
    return status_ok();
}

static bool put(int fd, const unsigned char *bytes, size_t n, int64_t begin)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && (errno != EAGAIN || !wait_for(fd, POLLOUT, begin))) {
            return false;
        }
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool get_letter(int fd, char letter, int64_t begin)
{
    char got;
    return wait_for(fd, POLLIN, begin) && recv(fd, &got, 1, 0) == 1 && got == letter;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first pings are not counted: they wait for the server to wake. */
static bool ping(double *latency_us, int fd, int64_t begin)
{
    double times[N_PINGS];
    for (int i = -3; i < N_PINGS; i++) {
        int64_t sent = clock_ns();
        if (!put(fd, (const unsigned char *)"P", 1, begin) || !get_letter(fd, 'P', begin)) {
            return false;
        }
        times[i < 0 ? 0 : i] = clock_since_s(sent) * 1e6;
    }
    qsort(times, N_PINGS, sizeof times[0], compare);
    *latency_us = times[N_PINGS / 2];
    return true;
}

/* Bytes a second of a burst of n bytes; 0: it failed. */
static double send_burst(int fd, uint64_t n, int64_t begin)
{
    static const unsigned char zeros[CHUNK];
    unsigned char head[9] = {'B'};
    bytes_store_u64(head + 1, n);
    int64_t sent = clock_ns();
    bool ok = put(fd, head, sizeof head, begin);
    for (uint64_t left = n; ok && left > 0;) {
        size_t part = left < CHUNK ? (size_t)left : CHUNK;
        ok = put(fd, zeros, part, begin);
        left -= part;
    }
    return ok && get_letter(fd, 'B', begin) ? (double)n / clock_since_s(sent) : 0;
}

struct status net_client_test(struct net_result *r, const char *host, int port, const char *token)
{
    int fd = -1;
    *r = (struct net_result){0};
    TRY(connect_to(&fd, host, port));
    int64_t begin = clock_ns();
    bool ok =
        put(fd, (const unsigned char *)token, NET_TOKEN_BYTES, begin) && ping(&r->latency_us, fd, begin);
    double rate = ok ? send_burst(fd, FIRST_BURST, begin) : 0;
    double n = rate * burst_s < LARGEST_BURST ? rate * burst_s : LARGEST_BURST;
    r->bytes_per_s = n > FIRST_BURST ? send_burst(fd, (uint64_t)n, begin) : rate;
    close(fd);
    return r->bytes_per_s > 0 ? status_ok()
                              : status_error(STATUS_UNAVAILABLE,
                                             "%s accepts a connection, but no data arrives: full-size "
                                             "packets may be lost; compare the MTU of both hosts: ip link",
                                             host);
}
