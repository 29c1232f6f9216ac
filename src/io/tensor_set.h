/* tensor_set: the tensors of one or several safetensors files, each complete in one file, or in slices in any
 * number of files.
 *
 * A slice is a run of elements of the flattened tensor, or of some columns of a matrix.  In its file it has
 * the tensor's own name and one dim of elements, and the file's "__metadata__" describes it: "slice.NAME":
 * "[begin, end) of [dims]" or "[begin, end) of columns [first, last) of [dims]", so other readers of
 * safetensors can open the file.  A file without such metadata holds complete tensors, like any other.
 *
 * The rule: the slices of a tensor tile it, and agree on its shape and type, or the set is refused.  Slices
 * of columns do so stripe by stripe: those of the same columns tile these, and such stripes lie side by
 * side. */
#ifndef KILN_IO_TENSOR_SET_H
#define KILN_IO_TENSOR_SET_H

#include "io/safetensors.h"

enum { TENSOR_SLICE_BYTES = 160 };

/* A part of a tensor of these dims: all of its rows, of all columns or of some. */
struct tensor_slice {
    int n_dims;
    int64_t dims[TENSOR_MAX_DIMS];
    struct stored_part part;
};

/* Writes the text of a slice for the metadata: safetensors_item.slice. */
void tensor_slice_format(char out[TENSOR_SLICE_BYTES], const struct tensor_slice *s);

/* Reads what a file's metadata says of an entry.  STATUS_DATA if the text is malformed or does not fit the
 * entry. */
struct status tensor_slice_of(struct tensor_slice *s, const struct safetensors *f,
                              const struct stored_tensor *e, const char *source);

struct tensor_set {
    struct stored_tensor *tensors; /* [n] in the order of names, laid over their slices */
    const char **sources;          /* [n] names the file of the first slice of each */
    int n;
    void *rects; /* owned; the rectangles of all */
};

/* A file, and its name for messages. */
struct tensor_set_file {
    const struct safetensors *file;
    const char *source;
};

/* The files, and their names, must outlive the set.  STATUS_DATA names the tensor and the file if slices
 * overlap, leave a hole or disagree. */
struct status tensor_set_init(struct tensor_set *t, const struct tensor_set_file *files, int n_files);

/* Safe on a zeroed struct. */
void tensor_set_fini(struct tensor_set *t);

/* The tensor of this name, borrowed; NULL if there is none. */
const struct stored_tensor *tensor_set_find(const struct tensor_set *t, const char *name);

/* Copies a slice of a tensor of the set into `out`, dense in host memory; types convert as in
 * stored_tensor_read.  STATUS_DATA if the tensor has another shape than the slice is of. */
struct status tensor_set_read(const struct tensor_set *t, const struct stored_tensor *from,
                              const struct tensor_slice *slice, tensor out);

#endif
