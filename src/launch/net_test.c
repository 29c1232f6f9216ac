#define _GNU_SOURCE
#include "launch/net_test.h"

#include "core/bytes.h"
#include "core/clock.h"
#include "core/entropy.h"

#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const double limit_s = 3, burst_s = 0.15;
enum { MOST_CLIENTS = 64, N_PINGS = 21, CHUNK = 1 << 16, FIRST_BURST = 1 << 20, LARGEST_BURST = 1 << 28 };

/* Limits every wait for the peer, that for a connection too, and sends at once. */
static void set_up(int fd, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Sends n bytes; false: they do not arrive within limit_s of `begin`. */
static bool put(int fd, const void *bytes, size_t n, int64_t begin)
{
    for (size_t done = 0; done < n;) {
        ssize_t sent = send(fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
        if (sent < 0 || clock_since_s(begin) > limit_s) {
            return false;
        }
        done += (size_t)sent;
    }
    return true;
}

static bool get(int fd, void *bytes, size_t n)
{
    return recv(fd, bytes, n, MSG_WAITALL) == (ssize_t)n;
}

/* ---- the server ---- */

struct status net_test_open(struct net_server *s, int port)
{
    static const int families[] = {AF_INET6,
                                   AF_INET}; /* both kinds of addresses; on a machine without IPv6 one */
    unsigned char random[NET_TOKEN_BYTES / 2];
    struct sockaddr_in6 address = {0}; /* any; the port is at the same place in both kinds */
    socklen_t n = sizeof address;
    int on = 1, off = 0;
    bool is_open = false;
    *s = (struct net_server){.fd = -1};
    for (size_t i = 0; i < sizeof families / sizeof *families && !is_open; i++) {
        address.sin6_family = (sa_family_t)families[i];
        address.sin6_port = htons((uint16_t)port);
        s->fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        is_open = bind(s->fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                  listen(s->fd, MOST_CLIENTS) == 0 &&
                  getsockname(s->fd, (struct sockaddr *)&address, &n) == 0;
        if (!is_open && s->fd >= 0) {
            int error = errno;
            close(s->fd);
            errno = error;
        }
    }
    FAIL_IF(!is_open, STATUS_UNAVAILABLE, "cannot listen on port %d: %s", port, strerror(errno));
    if (!entropy_draw(random, sizeof random)) {
        close(s->fd);
        return status_error(STATUS_UNAVAILABLE, "the system has no random bytes");
    }
    s->port = ntohs(address.sin6_port);
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(s->token + 2 * i, 3, "%02x", random[i]);
    }
    return status_ok();
}

/* Answers a client until it goes; false for a stranger, who has not sent the token within a second. */
static bool answer(const struct net_server *s, int fd)
{
    unsigned char head[NET_TOKEN_BYTES], chunk[CHUNK];
    set_up(fd, 1);
    if (!get(fd, head, NET_TOKEN_BYTES) || memcmp(head, s->token, NET_TOKEN_BYTES) != 0) {
        return false;
    }
    set_up(fd, (int)limit_s);
    while (get(fd, head, 1) && (head[0] == 'P' || (head[0] == 'B' && get(fd, head + 1, 8)))) {
        ssize_t got = 0;
        for (uint64_t left = head[0] == 'B' ? bytes_load_u64(head + 1) : 0; left > 0 && got >= 0;) {
            got = recv(fd, chunk, left < CHUNK ? (size_t)left : CHUNK, 0);
            got = got == 0 ? -1 : got;
            left -= got > 0 ? (uint64_t)got : 0;
        }
        if (got < 0 || send(fd, head, 1, MSG_NOSIGNAL) != 1) {
            break;
        }
    }
    return true;
}

struct status net_test_serve(struct net_server *s, int n_clients, double seconds)
{
    int n_here = 0, code;
    for (int64_t begin = clock_ns(); n_clients > 0 && clock_since_s(begin) < seconds;) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        int fd =
            poll(&p, 1, 50) == 1 && n_here < MOST_CLIENTS ? accept4(s->fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        pid_t pid = fd >= 0 ? fork() : -1;
        if (pid == 0) {
            close(s->fd);
            alarm((unsigned)seconds + 1);
            return answer(s, fd) ? status_ok() : status_error(STATUS_DATA, "a stranger");
        }
        if (fd >= 0) {
            close(fd);
        }
        n_here += pid > 0;
        while (n_here > 0 && waitpid(-1, &code, WNOHANG) > 0) {
            n_here--;
            n_clients -= code == 0;
        }
    }
    close(s->fd);
    return status_ok();
}

/* ---- the client ---- */

static struct status refused(int error, const char *host, int port)
{
    FAIL_IF(error == ECONNREFUSED, STATUS_UNAVAILABLE,
            "%s refuses port %d: a firewall there rejects it; open the ports above 1024 between the hosts",
            host, port);
    return status_error(STATUS_UNAVAILABLE,
                        "port %d of %s: %s; a firewall drops it, or an interface is down (on it: ip link; ip "
                        "link set dev eth0 up); open the ports above 1024 between the hosts",
                        port, host, error == EINPROGRESS ? "no answer in 3 s" : strerror(error));
}

static struct status connect_to(int *fd, const char *host, int port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host, service, &hints, &found);
    FAIL_IF(error != 0, STATUS_UNAVAILABLE,
            "no address for %s (%s): add a line \"ADDRESS %s\" to /etc/hosts here", host, gai_strerror(error),
            host);
    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_up(*fd, (int)limit_s);
    error = connect(*fd, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
    freeaddrinfo(found);
    if (error != 0 && *fd >= 0) {
        close(*fd);
    }
    return error == 0 ? status_ok() : refused(error, host, port);
}

/* Finds the least time of a byte's way there and back; false: it is lost. */
static bool ping(double *latency_us, int fd, int64_t begin)
{
    char letter;
    *latency_us = limit_s * 1e6;
    for (int i = 0; i < N_PINGS; i++) {
        int64_t sent = clock_ns();
        if (!put(fd, "P", 1, begin) || !get(fd, &letter, 1)) {
            return false;
        }
        *latency_us = fmin(*latency_us, clock_since_s(sent) * 1e6);
    }
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
    return ok && get(fd, head, 1) ? (double)n / clock_since_s(sent) : 0;
}

struct status net_test_connection(struct net_result *r, const char *host, int port, const char *token)
{
    int fd = -1;
    *r = (struct net_result){0};
    TRY(connect_to(&fd, host, port));
    int64_t begin = clock_ns();
    bool ok = put(fd, token, NET_TOKEN_BYTES, begin) && ping(&r->latency_us, fd, begin);
    double rate = ok ? send_burst(fd, FIRST_BURST, begin) : 0;
    double n = fmin(rate * burst_s, LARGEST_BURST);
    r->bytes_per_s = n > FIRST_BURST ? send_burst(fd, (uint64_t)n, begin) : rate;
    close(fd);
    return r->bytes_per_s > 0 ? status_ok()
                              : status_error(STATUS_UNAVAILABLE,
                                             "%s accepts a connection, but no data arrives: full-size "
                                             "packets may be lost; compare the MTU of both hosts: ip link",
                                             host);
}

struct status net_test_interface(const char *name)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    bool exists = fd >= 0 && strlen(name) < IFNAMSIZ && ioctl(fd, SIOCGIFFLAGS, &request) == 0;
    if (fd >= 0) {
        close(fd);
    }
    FAIL_IF(!exists, STATUS_UNAVAILABLE, "there is no interface %.40s: `ip link` lists the interfaces", name);
    FAIL_IF((request.ifr_flags & IFF_UP) == 0, STATUS_UNAVAILABLE,
            "interface %s is down: ip link set dev %s up", name, name);
    return (request.ifr_flags & IFF_RUNNING) != 0
               ? status_ok()
               : status_error(STATUS_UNAVAILABLE,
                              "interface %s is up but has no carrier: check its cable and switch", name);
}
