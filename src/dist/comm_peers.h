/* comm_peers: the ranks of a communicator as the peers of an exec (dev/peers.h). */
#ifndef KILN_DIST_COMM_PEERS_H
#define KILN_DIST_COMM_PEERS_H

#include "dev/peers.h"
#include "dist/comm.h"

struct comm_peers {
    struct comm comm;   /* borrowed; for tensors of the exec's device */
    int64_t *bounds;    /* [size + 1] bounds of equal parts */
    struct peers peers; /* value for exec.peers, which points to it: the struct must not move */
};

/* Makes peers of the communicator's ranks.  STATUS_MEMORY. */
struct status comm_peers_init(struct comm_peers *p, const struct comm *c);

/* Safe on a zeroed struct. */
void comm_peers_fini(struct comm_peers *p);

#endif
