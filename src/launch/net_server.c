#define _GNU_SOURCE
#include "launch/net_server.h"

#include "core/bytes.h"
#include "core/clock.h"
#include "core/entropy.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N_PLACES = 64, CHUNK = 1 << 18 };

/* A connection. */
struct guest {
    int fd;                              /* -1: the place is free */
    int64_t since_ns;                    /* when it came */
    bool is_known;                       /* it has sent the token */
    unsigned char head[NET_TOKEN_BYTES]; /* of the token or of a request, as far as it has come */
    size_t n_head;
    uint64_t n_left; /* bytes of a 'B' that are to come */
};

struct status net_server_open(struct net_server *s, int port)
{
    unsigned char random[NET_TOKEN_BYTES / 2];
    struct sockaddr_in6 address = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
    struct sockaddr_in address4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t n = sizeof address;
    int on = 1, off = 0;
    *s = (struct net_server){.fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    bool is_open = false;
    if (s->fd >= 0) { /* both kinds of addresses */
        setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        is_open = bind(s->fd, (struct sockaddr *)&address, sizeof address) == 0;
    }
    if (!is_open) { /* a machine without IPv6 */
        if (s->fd >= 0) {
            close(s->fd);
        }
        s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        is_open = s->fd >= 0 && bind(s->fd, (struct sockaddr *)&address4, sizeof address4) == 0;
    }
    if (!is_open || listen(s->fd, N_PLACES) != 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &n) != 0 || !entropy_draw(random, sizeof random)) {
        struct status failure =
            status_error(STATUS_UNAVAILABLE, "cannot listen on port %d: %s", port, strerror(errno));
        if (s->fd >= 0) {
            close(s->fd);
        }
        return failure;
    }
    s->port = ntohs(address.sin6_port); /* at the same place in both kinds */
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(s->token + 2 * i, 3, "%02x", random[i]);
    }
    return status_ok();
}

static bool answer(struct guest *g, char letter)
{
    g->n_head = 0;
    return send(g->fd, &letter, 1, MSG_NOSIGNAL) == 1;
}

/* Takes one byte of a token or of a request; false ends the connection. */
static bool take_byte(struct guest *g, const struct net_server *s, unsigned char byte)
{
    g->head[g->n_head++] = byte;
    if (!g->is_known) {
        if (g->n_head < NET_TOKEN_BYTES) {
            return true;
        }
        g->is_known = memcmp(g->head, s->token, NET_TOKEN_BYTES) == 0;
        g->n_head = 0;
        return g->is_known;
    }
    if (g->head[0] == 'P') {
        return answer(g, 'P');
    }
    if (g->head[0] != 'B') {
        return false;
    }
    if (g->n_head == 9) {
        g->n_left = bytes_load_u64(g->head + 1);
        return g->n_left > 0 || answer(g, 'B');
    }
    return true;
}

/* Takes what has come; false ends the connection. */
static bool attend(struct guest *g, const struct net_server *s, unsigned char *chunk)
{
    ssize_t n = recv(g->fd, chunk, CHUNK, MSG_DONTWAIT);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    for (ssize_t i = 0; i < n;) {
        if (g->n_left > 0) {
            uint64_t rest = (uint64_t)(n - i), taken = rest < g->n_left ? rest : g->n_left;
            g->n_left -= taken;
            i += (ssize_t)taken;
            if (g->n_left == 0 && !answer(g, 'B')) {
                return false;
            }
        } else if (!take_byte(g, s, chunk[i++])) {
            return false;
        }
    }
    return true;
}

static void let_in(struct guest *guests, const struct net_server *s)
{
    int on = 1, fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (int i = 0; fd >= 0 && i < N_PLACES; i++) {
        if (guests[i].fd < 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            guests[i] = (struct guest){.fd = fd, .since_ns = clock_ns()};
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* A stranger, who has not sent the token within a second, is sent away: it would hold a place. */
static bool has_overstayed(const struct guest *g)
{
    const double MOST_S = 1;
    return g->fd >= 0 && !g->is_known && clock_since_s(g->since_ns) > MOST_S;
}

void net_server_run(struct net_server *s, int n_clients, double seconds)
{
    static unsigned char chunk[CHUNK]; /* never read */
    struct guest guests[N_PLACES];
    struct pollfd polls[N_PLACES + 1];
    int n_gone = 0;
    for (int i = 0; i < N_PLACES; i++) {
        guests[i].fd = -1;
    }
    for (int64_t begin = clock_ns(); n_gone < n_clients && clock_since_s(begin) < seconds;) {
        polls[N_PLACES] = (struct pollfd){.fd = s->fd, .events = POLLIN};
        for (int i = 0; i < N_PLACES; i++) {
            polls[i] = (struct pollfd){.fd = guests[i].fd, .events = POLLIN};
        }
        poll(polls, N_PLACES + 1, 200);
        for (int i = 0; i < N_PLACES; i++) {
            bool stays = polls[i].fd < 0 || polls[i].revents == 0 || attend(&guests[i], s, chunk);
            if (!stays || has_overstayed(&guests[i])) {
                n_gone += guests[i].is_known;
                close(guests[i].fd);
                guests[i].fd = -1;
            }
        }
        if (polls[N_PLACES].revents != 0) {
            let_in(guests, s);
        }
    }
    for (int i = 0; i < N_PLACES; i++) {
        if (guests[i].fd >= 0) {
            close(guests[i].fd);
        }
    }
    close(s->fd);
}

struct status net_server_check_interface(const char *name)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    bool exists = fd >= 0 && strlen(name) < IFNAMSIZ && ioctl(fd, SIOCGIFFLAGS, &request) == 0;
    if (fd >= 0) {
        close(fd);
    }
    if (!exists) {
        return status_error(STATUS_UNAVAILABLE, "there is no interface %.40s: `ip link` lists the interfaces",
                            name);
    }
    if ((request.ifr_flags & IFF_UP) == 0) {
        return status_error(STATUS_UNAVAILABLE, "interface %s is down: ip link set dev %s up", name, name);
    }
    return (request.ifr_flags & IFF_RUNNING) != 0
               ? status_ok()
               : status_error(STATUS_UNAVAILABLE,
                              "interface %s is up but has no carrier: check its cable and switch", name);
}
