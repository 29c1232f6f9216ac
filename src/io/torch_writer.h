/* torch_writer: writes tensors, and what lies around them, as torch.save does (torch/serialization.py, since
 * PyTorch 1.6): torch.load(weights_only=True) reads it, and so does io/torch_file.h. */
#ifndef KILN_IO_TORCH_WRITER_H
#define KILN_IO_TORCH_WRITER_H

#include "core/buf.h"
#include "core/tensor.h"

struct torch_item {
    const char *name;
    /* dense, host, fp32; items with the same address and shape share a storage, as tied parameters do.
     * Without an address it is a shape, of which torch_writer_commit_from asks the values. */
    tensor value;
};

/* A file in the making: the values that are put with io/pickle_writer.h and below, one around them. */
struct torch_writer {
    struct buf pickle;
    struct buf tensors; /* tensor each, in their order */
};

/* Begins a file without tensors. */
void torch_writer_init(struct torch_writer *w);

/* A tensor, whose data must stay until the commit; and an OrderedDict of tensors. */
void torch_writer_put_tensor(struct torch_writer *w, tensor t);
void torch_writer_put_dict(struct torch_writer *w, const struct torch_item *items, int n);

/* torch.Size of a shape. */
void torch_writer_put_size(struct buf *pickle, tensor shape);

/* Gives the values of a tensor, by its number in the order in which all were put; valid until the next call.
 */
typedef struct status torch_source(void *context, int number, tensor *values);

/* Commits as torch_writer_commit does, with one tensor at a time in memory. */
struct status torch_writer_commit_from(struct torch_writer *w, const char *path, torch_source *source,
                                       void *context);

/* Writes all to `path`, where nothing exists before the file is complete, and frees the writer either way. */
struct status torch_writer_commit(struct torch_writer *w, const char *path);

#endif
