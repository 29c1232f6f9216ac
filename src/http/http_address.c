#include "http/http_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 511 }; /* nginx's value; the kernel takes less where net.core.somaxconn says so */

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un name;
};

static bool is_loopback(const union any_address *a)
{
    return (a->any.sa_family == AF_INET && ntohl(a->v4.sin_addr.s_addr) >> 24 == 127) ||
           (a->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr));
}

static struct status read_address(union any_address *a, socklen_t *n, const char *host, int port)
{
    *a = (union any_address){0};
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons((uint16_t)port);
        *n = sizeof a->v6;
        return status_ok();
    }
    const char *digits = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    FAIL_IF(inet_pton(AF_INET, digits, &a->v4.sin_addr) != 1, STATUS_USAGE,
            "host '%s' is no address; give one of this machine's, such as 127.0.0.1, ::1 or 0.0.0.0 for all",
            host);
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons((uint16_t)port);
    *n = sizeof a->v4;
    return status_ok();
}

static struct status cannot_listen(const char *host, int port, int error)
{
    const char *remedy = error == EADDRINUSE      ? "another program has it; choose another port"
                         : error == EACCES        ? "ports below 1024 are root's; choose another port"
                         : error == EADDRNOTAVAIL ? "this machine has no such address; choose another host"
                                                  : strerror(error);
    bool by_user = error == EADDRINUSE || error == EACCES || error == EADDRNOTAVAIL;
    return status_error(by_user ? STATUS_USAGE : STATUS_IO, "cannot listen on %s port %d: %s", host, port,
                        remedy);
}

/* Reads the address that the socket is bound to. */
static void describe(struct http_address *a)
{
    union any_address own = {0};
    socklen_t n = sizeof own;
    getsockname(a->fd, &own.any, &n);
    a->port = own.any.sa_family == AF_INET    ? ntohs(own.v4.sin_port)
              : own.any.sa_family == AF_INET6 ? ntohs(own.v6.sin6_port)
                                              : 0;
    a->is_loopback = is_loopback(&own);
}

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return fd;
}

struct status http_address_open(struct http_address *a, const char *host, int port)
{
    *a = (struct http_address){.fd = -1};
    union any_address address;
    socklen_t n = 0;
    TRY(read_address(&address, &n, host, port));
    int on = 1;
    a->fd = open_socket(address.any.sa_family);
    if (a->fd < 0 || setsockopt(a->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(a->fd, &address.any, n) != 0 || listen(a->fd, BACKLOG) != 0) {
        struct status s = cannot_listen(host, port, errno);
        http_address_close(a);
        return s;
    }
    describe(a);
    return status_ok();
}

/* Removes a socket of this user on which no process listens; STATUS_USAGE if the path has anything else. */
static struct status remove_dead(const char *path, const union any_address *address)
{
    struct stat found;
    if (lstat(path, &found) != 0) {
        return status_ok(); /* bind says what is wrong with the path, if something is */
    }
    FAIL_IF(!S_ISSOCK(found.st_mode) || found.st_uid != geteuid(), STATUS_USAGE,
            "%s exists and is no socket of this user; choose another path", path);
    int fd = open_socket(AF_UNIX);
    bool is_dead = fd >= 0 && connect(fd, &address->any, sizeof address->name) != 0 && errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    FAIL_IF(!is_dead || unlink(path) != 0, STATUS_USAGE,
            "a program listens on %s already; choose another path", path);
    return status_ok();
}

struct status http_address_open_unix(struct http_address *a, const char *path)
{
    *a = (struct http_address){.fd = -1};
    union any_address address = {.name = {.sun_family = AF_UNIX}};
    FAIL_IF(path[0] == '\0' || strlen(path) >= sizeof address.name.sun_path, STATUS_USAGE,
            "the path of a unix socket has 1 to %zu bytes, '%s' has %zu", sizeof address.name.sun_path - 1,
            path, strlen(path));
    memcpy(address.name.sun_path, path, strlen(path) + 1);
    TRY(remove_dead(path, &address));
    a->fd = open_socket(AF_UNIX);
    struct stat made;
    bool is_bound = a->fd >= 0 && bind(a->fd, &address.any, sizeof address.name) == 0;
    if (!is_bound || listen(a->fd, BACKLOG) != 0 || lstat(path, &made) != 0 ||
        (a->path = strdup(path)) == NULL) {
        struct status s = status_error(STATUS_IO, "cannot listen on %s: %s", path, strerror(errno));
        if (is_bound) {
            unlink(path);
        }
        http_address_close(a);
        return s;
    }
    a->device = made.st_dev;
    a->inode = made.st_ino;
    return status_ok();
}

struct status http_address_take(struct http_address *a, int fd)
{
    *a = (struct http_address){.fd = -1};
    int listens = 0, type = 0;
    socklen_t n = sizeof listens;
    FAIL_IF(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || !listens ||
                getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) != 0 || type != SOCK_STREAM,
            STATUS_USAGE, "descriptor %d is no stream socket that listens", fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    a->fd = fd;
    describe(a);
    return status_ok();
}

void http_address_close(struct http_address *a)
{
    struct stat found;
    if (a->path != NULL && lstat(a->path, &found) == 0 && found.st_dev == a->device &&
        found.st_ino == a->inode) {
        unlink(a->path);
    }
    free(a->path);
    a->path = NULL;
    if (a->fd >= 0) {
        close(a->fd);
    }
    a->fd = -1;
}

void http_address_print(char *to, size_t n, const struct sockaddr *from)
{
    const union any_address *a = (const union any_address *)(const void *)from;
    bool is_printed =
        from != NULL && n > 0 &&
        ((from->sa_family == AF_INET && inet_ntop(AF_INET, &a->v4.sin_addr, to, (socklen_t)n)) ||
         (from->sa_family == AF_INET6 && inet_ntop(AF_INET6, &a->v6.sin6_addr, to, (socklen_t)n)));
    if (!is_printed) {
        snprintf(to, n, "unix");
    }
}
