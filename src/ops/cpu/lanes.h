/* lanes: the threads of the cpu table.  Work is cut into items by its size alone, items are independent, and
 * a thread takes whichever comes next: so results do not depend on the number of threads.
 *
 * A lane is one thread's private scratch, for tiles that never outlive an item.  It is allocated when its
 * thread first needs it, grows to the largest item seen and is freed with its thread. */
#ifndef KILN_OPS_CPU_LANES_H
#define KILN_OPS_CPU_LANES_H

#include "dev/exec.h"

#include <stddef.h>
#include <stdint.h>

/* Does item `item`; `lane` has the bytes that lanes_run was asked for, aligned to 64, with undefined
 * contents. */
typedef void lanes_body(const void *context, int64_t item, void *lane);

/* Calls `body` for every item in [0, n_items), in any order, on all threads.  STATUS_MEMORY sticks in the
 * exec if a lane cannot be had; then nothing was done by that thread and the results are undefined. */
void lanes_run(struct exec *x, const char *op, int64_t n_items, size_t lane_bytes, lanes_body *body,
               const void *context);

#endif
