/* comm_call: what a rank says of the call that it is in, so that all learn whether they are in the same, and
 * whether one has failed.  For the tables of communicators (comm.h).
 *
 * A call has no pointers, so it can be sent to another process as it is.  Every rank judges the
 * calls of all ranks by comm_call_judge, which gives the same verdict from the same calls; so no rank has to
 * tell the others what to do. */
#ifndef KILN_DIST_COMM_CALL_H
#define KILN_DIST_COMM_CALL_H

#include "core/tensor.h"
#include "dist/comm.h"

enum comm_call_kind {
    CALL_AGREE,
    CALL_ALL_REDUCE_SUM,
    CALL_ALL_REDUCE_MAX,
    CALL_ALL_GATHER,
    CALL_BROADCAST,
    CALL_REDUCE_SCATTER_SUM
};

struct comm_call {
    enum comm_call_kind kind;
    int root;         /* of a broadcast */
    enum dtype dtype; /* what all ranks must pass alike */
    int64_t count;
    uint64_t bounds_hash;
    struct status status; /* of this rank */
};

/* The call of rank r of a collective on t, which must be in host memory and of a dtype that the call takes:
 * else, and if the exec has failed, its status is an error. */
struct comm_call comm_call_of(enum comm_call_kind kind, const struct exec *x, tensor t);

/* The same of a sum in parts by `bounds` [size + 1], a gathering by such, and a broadcast. */
struct comm_call comm_call_scatter(const struct exec *x, tensor t, const int64_t *bounds, int size);
struct comm_call comm_call_gather(const struct exec *x, tensor t, const int64_t *bounds, int size);
struct comm_call comm_call_broadcast(const struct exec *x, tensor t, int root);

/* For tables that move data by other means than `control`, a communicator of the same ranks on the host: OK
 * if all ranks are in the same call and none has failed; else all return the same error. */
struct status comm_call_agree(const struct comm *control, const struct comm_call *mine);

/* OK if tensors of the exec are in host memory. */
struct status comm_call_host(const struct exec *x);

/* "a sum" */
const char *comm_call_name(enum comm_call_kind kind);

/* What all ranks return: the worst of their own errors, else that of the first whose call is not that of rank
 * 0.  calls [size] of the ranks with these numbers. */
struct status comm_call_judge(const struct comm_call *calls, int size, const struct comm_numbers *numbers);

#endif
