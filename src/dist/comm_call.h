/* comm_call: what a rank says of the call that it is in, so that all learn whether they are in the same call,
 * and whether one has failed.  For the tables of communicators (comm.h).
 *
 * A call has no pointers, so it can be sent to another process as it is.  Every rank judges the calls of all
 * ranks by comm_call_judge, which gives the same verdict from the same calls; so no rank has to send the
 * others a decision. */
#ifndef KILN_DIST_COMM_CALL_H
#define KILN_DIST_COMM_CALL_H

#include "core/tensor.h"
#include "dist/comm.h"

enum comm_call_kind {
    CALL_AGREE,
    CALL_ALL_REDUCE_SUM,
    CALL_ALL_REDUCE_MAX,
    CALL_ALL_REDUCE_MAX_SIGNED,
    CALL_ALL_GATHER,
    CALL_BROADCAST,
    CALL_REDUCE_SCATTER_SUM,
    CALL_SEND,
    CALL_RECEIVE
};

struct comm_call {
    enum comm_call_kind kind;
    int root;         /* sender of a broadcast; the other rank of a message */
    enum dtype dtype; /* must be the same on all ranks, as root, count and bounds */
    int64_t count;
    uint64_t bounds_hash;
    bool only_agrees;     /* the call's data move by other means (comm_call_agree) */
    struct status status; /* status of this rank */
};

/* Describes this rank's call.  If the exec has failed, or the call does not take the dtype, its status is an
 * error. */
struct comm_call comm_call_of(enum comm_call_kind kind, const struct exec *x, tensor t, const int64_t *bounds,
                              int size, int root);

/* Returns OK if all ranks are in the same call and none has failed; else all return the same error.  For
 * tables that move data by other means than `control`, a communicator of the same ranks on the host. */
struct status comm_call_agree(const struct comm *control, const struct comm_call *mine);

/* Returns the call's status, or STATUS_USAGE if the exec's tensors are not in host memory.  For tables that
 * take only such tensors. */
struct status comm_call_host(const struct comm_call *c, const struct exec *x);

/* "a sum" */
const char *comm_call_name(enum comm_call_kind kind);

/* Returns the status that a call has on all ranks: the worst of their own errors, else the error of the first
 * rank whose call differs from rank 0's. calls [size], of the ranks with these numbers. */
struct status comm_call_judge(const struct comm_call *calls, int size, const struct comm_numbers *numbers);

#endif
