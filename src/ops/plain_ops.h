/* plain_ops: an op table in which some ops are computed by their definition (ops_ref) instead of the device's
 * kernels: `--plain_ops linear_gelu,attention`, to find the op that makes a difference.
 *
 * On a device whose memory is not the host's, such an op runs on the host: what its tensors view is copied
 * there and back.  Then nothing is recorded and replayed.  Either way it is slow, so it is for small models.
 * fp8 on such a device is refused by the op: its kernels hand each other more than the table's tensors
 * (ops.h, quantize). */
#ifndef KILN_OPS_PLAIN_OPS_H
#define KILN_OPS_PLAIN_OPS_H

#include "ops/backend.h"
#include "ops/op_watch.h"

struct plain_ops {
    struct op_watch watch; /* watch of the table, on a device with memory of its own */
    struct ops table;
};

/* The value of exec.served_by after a plain op. */
extern const char plain_ops_served_by[];

/* STATUS_USAGE unless `list` is "all" or names of ops with commas between them. */
struct status plain_ops_check(const char *list);

/* Replaces b->ops by p's table, in which these ops are plain, and says so in the log; does nothing if `list`
 * is NULL.  `p` must outlive every use of the table.  Fails as plain_ops_check. */
struct status plain_ops_init(struct plain_ops *p, struct backend *b, const char *list);

#endif
