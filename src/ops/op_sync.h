/* op_sync: waits after every op, so that a failure on a device names its op and its layer.  Slow where the
 * host would run ahead; for `--sync_ops`, after a failure. */
#ifndef KILN_OPS_OP_SYNC_H
#define KILN_OPS_OP_SYNC_H

#include "ops/op_watch.h"

/* Makes `w` a wrapper of `inner` that waits after every call. */
void op_sync_init(struct op_watch *w, const struct ops *inner);

#endif
