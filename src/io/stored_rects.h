/* stored_rects: lays a tensor over rectangles of other tensors, such as the slices that ranks wrote, the
 * parts of a join, or one row for many: so that it is read without being joined in memory. */
#ifndef KILN_IO_STORED_RECTS_H
#define KILN_IO_STORED_RECTS_H

#include "io/stored_tensor.h"

/* Zeroed it is empty. */
struct stored_rects {
    struct stored_rect *list; /* [n] */
    int64_t n;
    size_t capacity;
    bool failed; /* out of memory */
};

/* Adds the n[0] rows and n[1] columns from `from` on of `t`, as those from `at` on. */
void stored_rects_add(struct stored_rects *r, const int64_t at[2], const struct stored_tensor *t,
                      const int64_t from[2], const int64_t n[2]);

/* Adds `run`'s elements [begin, end), which lie one after the other at `data`. */
void stored_rects_add_run(struct stored_rects *r, const struct stored_part *run, const unsigned char *data,
                          size_t item_bytes);

/* Makes them the tensor `t`, whose dims and type are set, and whose storage and checksum stay.  The list
 * becomes the caller's, who frees it after `t`.  STATUS_MEMORY, also of what failed before; then it is freed.
 */
struct status stored_rects_take(struct stored_rects *r, struct stored_tensor *t, void **list);

#endif
