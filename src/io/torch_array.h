/* torch_array: the arrays of numpy in whose form PyTorch, until 2.5, pickled tensors of devices that it knows
 * no storage of, such as Gaudi's "hpu" (torch._utils._rebuild_device_tensor_from_numpy).
 *
 * The rule: protocol 2 has no bytes, so an array's are text, one character a byte.  They are decoded into
 * memory of the pickle, of no more bytes than the pickle has. */
#ifndef KILN_IO_TORCH_ARRAY_H
#define KILN_IO_TORCH_ARRAY_H

#include "io/pickle.h"

struct torch_array {
    const struct pickle_node *shape; /* a tuple, of what is not looked at */
    const struct pickle_node *type;  /* text: "f4" */
    const unsigned char *data;       /* [n], in C's order, little-endian */
    size_t n;
};

/* STATUS_DATA: the node is no such array; STATUS_MEMORY. */
struct status torch_array_read(struct torch_array *a, struct pickle *p, const struct pickle_node *array,
                               const char *source);

#endif
