/* op_watch: an op table that wraps another table and reports each call to a watcher, with its FLOPs and bytes
 * by the plan.
 *
 * Watches can be nested: a run may be timed, logged and synchronized at once.  An exec with the plain table
 * pays nothing. */
#ifndef KILN_OPS_OP_WATCH_H
#define KILN_OPS_OP_WATCH_H

#include "ops/ops.h"

enum { OP_WATCH_N_OPS = 56, OP_WATCH_MAX_SHAPES = 3 };

struct op_shape {
    enum dtype dtype;
    int n_dims;
    int64_t dims[TENSOR_MAX_DIMS];
};

struct op_call {
    int slot; /* number of the op, from 0 to OP_WATCH_N_OPS - 1 */
    double flops, bytes;
    int n_shapes;
    /* outputs first; the last one is an input, whose dtype counts as the op's */
    struct op_shape shapes[OP_WATCH_MAX_SHAPES];
};

struct op_watch {
    struct ops table; /* first: the exec points at it while it is watched */
    const struct ops *inner;
    void (*before)(struct op_watch *w, struct exec *x, const struct op_call *call); /* NULL: nothing to do */
    void (*after)(struct op_watch *w, struct exec *x, const struct op_call *call);
};

/* Wraps the table `inner`, which must outlive it; then use &w->table instead. */
void op_watch_init(struct op_watch *w, const struct ops *inner);

/* The name of a slot: "linear". */
const char *op_watch_name(int slot);

/* True for the table of a watch: then every call must be made, and none replayed. */
bool op_watch_is(const struct ops *ops);

/* Makes `w` a wrapper of `inner` that waits after every call, so that a failure on a device names its op and
 * its layer: of --sync_ops.  Slow where the host would run ahead. */
void op_sync_init(struct op_watch *w, const struct ops *inner);

#endif
