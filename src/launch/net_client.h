/* net_client: the end of a connection test that asks: can this host reach a peer by TCP, how fast does it
 * answer, how many bytes a second does it take. */
#ifndef KILN_LAUNCH_NET_CLIENT_H
#define KILN_LAUNCH_NET_CLIENT_H

#include "core/status.h"

struct net_result {
    double latency_us;  /* median of a byte's way there and back */
    double bytes_per_s; /* to the peer */
};

/* Tests the net_server of a host.  STATUS_UNAVAILABLE says why it is not reached and what mends it.  It takes
 * at most 3 s to connect, and as long again for the rest. */
struct status net_client_test(struct net_result *r, const char *host, int port, const char *token);

#endif
