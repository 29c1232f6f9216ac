/* op_sync: waits after every op, so that what fails on a device is named with its op and its layer.  Slow where the
 * host would run ahead: `--sync_ops`, after a failure. */
#ifndef KILN_OPS_OP_SYNC_H
#define KILN_OPS_OP_SYNC_H

#include "ops/op_watch.h"

/* Makes `w` a table around `inner` that waits after every call. */
void op_sync_init(struct op_watch *w, const struct ops *inner);

#endif
