/* torch_tensors: finds the tensors in a pickle that PyTorch wrote (torch/_utils.py, torch/serialization.py).
 *
 * PyTorch pickles a tensor as a call of a rebuild function with a storage outside the pickle, an offset,
 * sizes and strides. Here these calls become tensors, checked to be inside their storages; other objects stay
 * objects. */
#ifndef KILN_IO_TORCH_TENSORS_H
#define KILN_IO_TORCH_TENSORS_H

#include "io/pickle.h"
#include "io/stored_tensor.h"

/* Bytes that tensors are views of. */
struct torch_storage {
    const char *key; /* [key_bytes], borrowed */
    size_t key_bytes;
    const unsigned char *data; /* [n] */
    size_t n;
    int64_t n_elements; /* according to the pickle */
};

/* The names that such a pickle may use: functions that rebuild tensors, and classes of other objects in
 * checkpoints of the scripts that kiln replaces. */
const struct pickle_allowed *torch_tensors_allowed(size_t *n);

/* Compares two struct torch_storage by key, for qsort and bsearch. */
int torch_tensors_compare_keys(const void *a, const void *b);

/* Reads the id of a persistent node: key and size of a storage.  STATUS_DATA names `source`. */
struct status torch_tensors_storage(struct torch_storage *storage, const struct pickle_node *persistent,
                                    const char *source);

/* Turns the objects that represent tensors into tensors.  `storages` are sorted by key. */
struct status torch_tensors_bind(struct pickle *p, const struct torch_storage *storages, size_t n_storages,
                                 const char *source);

enum { TORCH_MAX_TENSORS = 1 << 18, TORCH_NAME_BYTES = 1024 };

/* Lists all tensors reachable from `root` through dicts, lists and tuples.  The name of each is its path,
 * keys and indexes joined by dots, or "tensor" if the root is a tensor.  The caller frees the list; the names
 * are in p->memory.  STATUS_DATA if there are too many, or the path is too deep or too long. */
struct status torch_tensors_list(struct stored_tensor **tensors, int *n, struct pickle *p,
                                 const char *source);

#endif
