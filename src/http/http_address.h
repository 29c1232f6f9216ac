/* http_address: the socket on which a server listens. */
#ifndef KILN_HTTP_HTTP_ADDRESS_H
#define KILN_HTTP_HTTP_ADDRESS_H

#include "core/status.h"

#include <sys/socket.h>
#include <sys/types.h>

struct http_address {
    int fd;           /* -1: none */
    int port;         /* 0: it has none */
    bool is_loopback; /* only this machine reaches it by an address of IP */
    char *path;       /* path of a unix socket, which is removed with the address; NULL: none */
    dev_t device;     /* device of the file that `path` named then */
    ino_t inode;
};

/* Listen; on failure there is nothing to close.  STATUS_USAGE: the address is none of this machine's, or
 * another program has it. */
struct status http_address_open(struct http_address *a, const char *host, int port);

/* A unix socket.  A socket of that name that no process listens on any more is replaced; anything else is
 * left alone. */
struct status http_address_open_unix(struct http_address *a, const char *path);

/* A socket that listens already, which is taken over. */
struct status http_address_take(struct http_address *a, int fd);

/* Safe on a closed one. */
void http_address_close(struct http_address *a);

/* An address as text for logs, "127.0.0.1" or "unix". */
void http_address_print(char *to, size_t n, const struct sockaddr *from);

#endif
