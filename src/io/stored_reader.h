/* stored_reader: reads a stored tensor from its first element to its last, in pieces, in its own type: for
 * code that looks at every value of large files. */
#ifndef KILN_IO_STORED_READER_H
#define KILN_IO_STORED_READER_H

#include "io/stored_tensor.h"

struct stored_reader {
    struct stored_tensor from; /* tensor; its checksum was compared at the opening */
    tensor values;             /* memory for a piece */
    int64_t next;              /* element */
};

/* Elements of a tensor that can be read. */
int64_t stored_reader_count(const struct stored_tensor *t);

/* The tensor must outlive the reader.  STATUS_DATA: it cannot be read, or a checksum is wrong;
 * STATUS_MEMORY. */
struct status stored_reader_open(struct stored_reader *r, const struct stored_tensor *t);

/* The next elements, flat, which the reader owns until the next call; none at the end.  Tensors of one
 * number of elements have pieces of equal sizes. */
struct status stored_reader_next(struct stored_reader *r, tensor *piece);

/* Safe on a zeroed struct and after a failed open. */
void stored_reader_close(struct stored_reader *r);

/* Elements that are no numbers, of a tensor of floating-point numbers. */
struct stored_nonfinite {
    int64_t n_nan, n_infinite;
    int64_t first; /* the first of them, in dense order; -1: there are none */
    double value;  /* value of that element */
};

/* Counts them; none in integers, nor in a tensor that cannot be read.  Errors as above. */
struct status stored_reader_find_nonfinite(struct stored_nonfinite *found, const struct stored_tensor *t);

#endif
