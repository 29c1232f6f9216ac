/* tensor_set: the tensors of one or several safetensors files, each whole in one file, or in slices in any
 * number of files.
 *
 * A slice is a run of elements of the flattened tensor, or of some columns of a matrix.  In its file it has
 * the tensor's own name and one dim of elements, and the file's "__metadata__" describes it: "slice.NAME":
 * "[begin, end) of [dims]" or "[begin, end) of columns [first, last) of [dims]", so other readers of
 * safetensors can open the file.  A file without such metadata holds whole tensors, like any other.
 *
 * The rule: the slices of a tensor tile it, and agree on its shape and type, or the set is refused.  Slices
 * of columns do so stripe by stripe: those of the same columns tile these, and such stripes lie side by
 * side. */
#ifndef KILN_IO_TENSOR_SET_H
#define KILN_IO_TENSOR_SET_H

#include "io/safetensors.h"
#include "io/stored_runs.h"

enum { TENSOR_SLICE_BYTES = 160 };

/* Elements [begin, end) of a tensor of these dims, flattened; or of columns [first_col, first_col + n_cols)
 * of a matrix, flattened by rows.  n_cols 0: of the whole tensor. */
struct tensor_slice {
    int n_dims;
    int64_t dims[TENSOR_MAX_DIMS];
    int64_t begin, end;
    int64_t first_col, n_cols;
};

/* Its text in the metadata, for safetensors_item.slice. */
void tensor_slice_format(char out[TENSOR_SLICE_BYTES], const struct tensor_slice *s);

/* Reads what a file's metadata says of an entry.  STATUS_DATA if the text is malformed or does not fit the
 * entry. */
struct status tensor_slice_of(struct tensor_slice *s, const struct safetensors *f,
                              const struct safetensors_entry *e, const char *source);

/* A tensor, or a slice of one, in a file. */
struct tensor_piece {
    const struct safetensors_entry *entry;
    struct tensor_slice slice;
    const char *source; /* names the file */
};

struct tensor_set {
    struct tensor_piece *pieces; /* [n_pieces], in the order of names, then of columns, then of elements */
    int n_pieces;
    int n; /* tensors */
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

/* The first piece of a tensor; the others follow it.  NULL if there is none of this name. */
const struct tensor_piece *tensor_set_find(const struct tensor_set *t, const char *name);

/* Copies the elements of the tensor from `begin` on into `out`, dense in host memory, until `out` is full,
 * from whatever pieces; types convert as in safetensors_read.  `first` is from tensor_set_find; `shape` is
 * that of the whole tensor: STATUS_DATA if the tensor has another. */
struct status tensor_set_read(const struct tensor_set *t, const struct tensor_piece *first, tensor shape,
                              int64_t begin, tensor out);

/* The same of any slice, whose dims are those of the whole tensor. */
struct status tensor_set_read_slice(const struct tensor_set *t, const struct tensor_piece *first,
                                    const struct tensor_slice *wanted, tensor out);

/* Appends the elements of the whole tensor, in their order, as they lie in the files: nothing is copied. */
void tensor_set_runs(const struct tensor_set *t, const struct tensor_piece *first, struct stored_runs *runs);

#endif
