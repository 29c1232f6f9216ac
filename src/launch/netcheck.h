/* netcheck: whether the hosts of a job reach one another, pair by pair: by ssh, without a password and with a
 * known key, and by TCP, with latency and bandwidth.
 *
 * From here each host is asked over ssh to start a server (launch/net_test) that ends by itself, then to test
 * all others (netcheck_probe).  Each host tests the others one by one, beginning with the next in the list,
 * so that at one time few bursts meet at one host.  Every step has its limit, all together 30 s. */
#ifndef KILN_LAUNCH_NETCHECK_H
#define KILN_LAUNCH_NETCHECK_H

#include "launch/host_list.h"

struct netcheck {
    const struct host_list *hosts;
    int64_t ssh_port;      /* 0: ssh's own */
    const char *interface; /* network interface that must be up on every host; NULL: none is asked for */
    const char *program;   /* kiln's path on every host */
    int64_t port;          /* port of the tests; 0: any */
};

/* Prints a table of the pairs to standard output, and each failure with what mends it to standard error.
 * STATUS_UNAVAILABLE says how many pairs failed. */
struct status netcheck_run(const struct netcheck *asked);

/* The part that runs on a host: tests the peers, "HOST:PORT:TOKEN,..." (a port 0 means that the host was not
 * reached: only ssh is tested), and prints a line for each test. */
struct status netcheck_probe(const char *list, int64_t ssh_port);

#endif
