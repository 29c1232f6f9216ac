/* head_rows: the rows of the last layer's output that a head reads, and their gradients.
 *
 * Where the last layer computes selected rows only (nn/row_picks.h), those of a list lie together in its
 * output.  Else they are copied to the head's own memory and, in a backward, added from there. */
#ifndef KILN_NN_HEAD_ROWS_H
#define KILN_NN_HEAD_ROWS_H

#include "nn/layer.h"

/* Rows that a head reads, and the dropout in front of it. */
struct head_rows {
    tensor rows, keys; /* [R, H]; i32 [R, 2] addresses of the dropout */
    struct dropout drop;
};

/* The rows of h, or of its gradient, that a field of the batch lists: in h already, or in `own`. */
tensor head_rows_in(tensor own, tensor h, int field, const struct layer_call *call);

/* The same, copied to `own` first if they are not in h. */
tensor head_rows_read(struct exec *x, tensor own, tensor h, int field, const struct layer_call *call);

/* Adds `own` to the listed rows of dh, unless they are in it. */
void head_rows_add(struct exec *x, tensor dh, tensor own, int field, const struct layer_call *call);

#endif
