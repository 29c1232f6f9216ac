/* net_test: both ends of a test of a connection between hosts.  The server listens on every address for a few
 * seconds.  Only who knows its token, which went over ssh, is answered; nothing that is received is kept.
 *
 * A client sends the token, then any number of requests, each answered by its one letter:
 *     'P'                                      a ping
 *     'B' and 8 bytes, little-endian: n        n bytes follow; the answer comes after the last */
#ifndef KILN_LAUNCH_NET_TEST_H
#define KILN_LAUNCH_NET_TEST_H

#include "core/status.h"

enum { NET_TOKEN_BYTES = 32 };

/* An open server: `port` and `token` are for its clients. */
struct net_server {
    int fd;
    int port;
    char token[NET_TOKEN_BYTES + 1]; /* hexadecimal */
};

/* STATUS_UNAVAILABLE: no port; 0 lets the kernel choose one. */
struct status net_test_open(struct net_server *s, int port);

/* Answers until n_clients have come and gone, or the time is over; closes the server.  Each client has a
 * process, which returns from here too: STATUS_DATA if it had not the token. */
struct status net_test_serve(struct net_server *s, int n_clients, double seconds);

struct net_result {
    double latency_us;  /* least time of a byte's way there and back */
    double bytes_per_s; /* bandwidth to the peer */
};

/* Tests the server of a host.  STATUS_UNAVAILABLE says why it is not reached and what mends it.  It takes at
 * most 3 s to connect, and at most 3 s for the rest. */
struct status net_test_connection(struct net_result *r, const char *host, int port, const char *token);

/* Whether the network interface is up; STATUS_UNAVAILABLE says that it is down or not there, and what to
 * type. */
struct status net_test_interface(const char *name);

#endif
