/* net_server: the end of a connection test that answers.  It listens on a port that the kernel chooses, on
 * every address, for a few seconds.  Only who knows its token, which went over ssh, is answered; nothing that
 * is received is kept.
 *
 * A client sends the token, then any number of requests, each answered by its one letter:
 *     'P'                                      a ping
 *     'B' and 8 bytes, little-endian: n        n bytes follow; the answer comes after the last */
#ifndef KILN_LAUNCH_NET_SERVER_H
#define KILN_LAUNCH_NET_SERVER_H

#include "core/status.h"

#include <stdint.h>

enum { NET_TOKEN_BYTES = 32 };

/* An open server: `port` and `token` are for its clients. */
struct net_server {
    int fd;
    int port;
    char token[NET_TOKEN_BYTES + 1]; /* hexadecimal */
};

/* STATUS_UNAVAILABLE: no port; 0 lets the kernel choose one. */
struct status net_server_open(struct net_server *s, int port);

/* Answers until n_clients have come and gone, or the time is over; closes the server. */
void net_server_run(struct net_server *s, int n_clients, double seconds);

/* Whether the network interface is up; STATUS_UNAVAILABLE says that it is down or not there, and what to
 * type. */
struct status net_server_check_interface(const char *name);

#endif
