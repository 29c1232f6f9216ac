/* torch_file: what torch.save wrote: .pt, .pth, .bin.
 *
 * Since PyTorch 1.6 a ZIP archive: ARCHIVE/data.pkl is a pickle of the object, ARCHIVE/data/KEY are its storages; before,
 * five pickles and the storages behind them (torch/serialization.py).  Both are read where they lie, by mapping, and
 * nothing of them is run: io/pickle.h.  What is in the object (`root`: the dict of a checkpoint) is a tree of nodes; all
 * tensors of it are a list too.  docs/decisions/0043_foreign_checkpoints.md says why this is our own. */
#ifndef KILN_IO_TORCH_FILE_H
#define KILN_IO_TORCH_FILE_H

#include "io/file.h"
#include "io/pickle.h"
#include "io/stored_tensor.h"

struct torch_file {
    struct file_map map;            /* the file, if torch_file_open mapped it */
    struct pickle pickle;           /* owns the nodes and the names */
    const struct pickle_node *root; /* what was saved, borrowed */
    struct stored_tensor *tensors;  /* [n], in the order of the file: torch_tensors_list */
    int n;
};

/* Whether the bytes begin like a file of torch.save, of either form. */
bool torch_file_is_one(const void *bytes, size_t n);

/* Maps the file and checks all but the values of its tensors.  STATUS_DATA says what is wrong with it, and what it asks
 * for that is not allowed. */
struct status torch_file_open(struct torch_file *f, const char *path);

/* The same over bytes that the caller keeps until the close; `source` names them in messages. */
struct status torch_file_parse(struct torch_file *f, const void *bytes, size_t n, const char *source);

/* Safe on a zeroed struct and after a failed open. */
void torch_file_close(struct torch_file *f);

#endif
