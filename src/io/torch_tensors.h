/* torch_tensors: what the pickles of PyTorch say of tensors (torch/_utils.py, torch/serialization.py).
 *
 * A tensor is the call of a function that would rebuild it, with a storage outside the pickle, a first element, sizes and
 * strides.  Here such calls become tensors, whose elements all lie in their storages; other objects stay what they are. */
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
    int64_t n_elements; /* by the pickle, if that was asked */
};

/* What pickles of PyTorch may ask for: what rebuilds tensors, and what stands beside them in the checkpoints of the
 * scripts that kiln replaces. */
const struct pickle_allowed *torch_tensors_allowed(size_t *n);

/* For qsort and bsearch by key. */
int torch_tensors_compare_keys(const void *a, const void *b);

/* What a persistent node calls for: the key of a storage, and how many bytes it has.  STATUS_DATA names `source`. */
struct status torch_tensors_storage(struct torch_storage *storage, const struct pickle_node *persistent,
                                    const char *source);

/* Turns the objects that stand for tensors into them.  `storages` are in the order of keys. */
struct status torch_tensors_bind(struct pickle *p, const struct torch_storage *storages, size_t n_storages,
                                 const char *source);

enum { TORCH_MAX_TENSORS = 1 << 18, TORCH_NAME_BYTES = 1024 };

/* All tensors below `root` that dicts, lists and tuples lead to, by name: keys and numbers joined by dots, or "tensor" if
 * root is one.  free() the list; the names are in p->memory.  STATUS_DATA: more, deeper or longer than any checkpoint. */
struct status torch_tensors_list(struct stored_tensor **tensors, int *n, struct pickle *p,
                                 const char *source);

#endif
