/* torch_writer: writes tensors as torch.save writes {KEY: state_dict} (torch/serialization.py, since PyTorch
 * 1.6): torch.load(weights_only=True) reads it, and so does io/torch_file.h. */
#ifndef KILN_IO_TORCH_WRITER_H
#define KILN_IO_TORCH_WRITER_H

#include "core/status.h"
#include "core/tensor.h"

struct torch_item {
    const char *name;
    /* dense, host, fp32; items with the same address and shape share a storage, as tied parameters do */
    tensor value;
};

/* Writes the dict `key` of the items, in their order.  Nothing is at `path` before it is whole. */
struct status torch_writer_save(const char *path, const char *key, const struct torch_item *items, int n);

#endif
