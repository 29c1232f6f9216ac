/* torch_file: reads files that torch.save wrote: .pt, .pth, .bin.
 *
 * Since PyTorch 1.6 such a file is a ZIP archive: ARCHIVE/data.pkl is the pickled object, ARCHIVE/data/KEY
 * are its storages.  Before, it was five pickles followed by the storages (torch/serialization.py).  Both
 * forms are mapped and read in place, and nothing in them is run (io/pickle.h).  `root` is the saved object
 * as a tree of nodes, usually the dict of a checkpoint; `tensors` lists all tensors in it.
 * docs/decisions/0043_foreign_checkpoints.md has the reasons. */
#ifndef KILN_IO_TORCH_FILE_H
#define KILN_IO_TORCH_FILE_H

#include "io/file.h"
#include "io/pickle.h"
#include "io/stored_tensor.h"

struct torch_file {
    struct file_map map;            /* the file, if torch_file_open mapped it */
    struct pickle pickle;           /* owns the nodes and the names */
    const struct pickle_node *root; /* the saved object; borrowed */
    struct stored_tensor *tensors;  /* [n], in the order of the file: torch_tensors_list */
    int n;
};

/* Whether the bytes begin like a file of torch.save, of either form. */
bool torch_file_is_one(const void *bytes, size_t n);

/* Maps the file and checks everything but the values of its tensors.  STATUS_DATA says what is wrong, or
 * which forbidden name its pickle uses. */
struct status torch_file_open(struct torch_file *f, const char *path);

/* Reads bytes as torch_file_open reads a file; the caller keeps them until the close, and `source` names them
 * in messages. */
struct status torch_file_parse(struct torch_file *f, const void *bytes, size_t n, const char *source);

/* Safe on a zeroed struct and after a failed open. */
void torch_file_close(struct torch_file *f);

#endif
