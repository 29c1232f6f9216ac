/* lanes: the threads of the cpu table.  Work is split into items by its size alone, items are independent,
 * and each thread takes the next free one, so results do not depend on the number of threads.
 *
 * A lane is one thread's private scratch, for tiles that live no longer than an item.  It is allocated when
 * its thread first needs it, grows to the largest size needed so far, and is freed with its thread. */
#ifndef KILN_OPS_CPU_LANES_H
#define KILN_OPS_CPU_LANES_H

#include "dev/exec.h"

#include <stddef.h>
#include <stdint.h>

/* Processes item `item`; `lane` has the bytes that lanes_run was asked for, aligned to 64, with undefined
 * contents. */
typedef void lanes_body(const void *context, int64_t item, void *lane);

/* Calls `body` for every item in [0, n_items), in any order, on all threads, or as many as the exec may use.
 * STATUS_MEMORY sticks in the exec if a lane cannot be allocated; that thread has then done nothing, and the
 * results are undefined. */
void lanes_run(struct exec *x, const char *op, int64_t n_items, size_t lane_bytes, lanes_body *body,
               const void *context);

#endif
