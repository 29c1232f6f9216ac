/* stored_runs: the elements of a tensor that lies in several places, such as the slices that ranks wrote, run
 * by run in their order: so that it can be read without being joined in memory. */
#ifndef KILN_IO_STORED_RUNS_H
#define KILN_IO_STORED_RUNS_H

#include "io/stored_tensor.h"

/* Zeroed but for item_bytes, of an element, it is empty. */
struct stored_runs {
    struct stored_piece *list; /* [n] */
    int64_t n, capacity;
    size_t item_bytes;
    bool failed; /* out of memory */
};

/* Appends n elements at `data`: to the last run, if they follow it. */
void stored_runs_add(struct stored_runs *r, const unsigned char *data, int64_t n);

/* Appends elements [first, first + n) of a flattened tensor, which is dense, or in pieces itself. */
void stored_runs_add_tensor(struct stored_runs *r, const struct stored_tensor *t, int64_t first, int64_t n);

/* Makes them the elements of `t`, whose dims and type are set, and which has as many.  The list becomes the
 * caller's, who frees it after `t`.  STATUS_MEMORY, also of what failed before; then it is freed. */
struct status stored_runs_take(struct stored_runs *r, struct stored_tensor *t, void **list);

#endif
