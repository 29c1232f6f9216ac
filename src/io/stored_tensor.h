/* stored_tensor: a tensor inside a mapped file of any format.  Every reader of tensor files lists these, and
 * all are read by stored_tensor_read.
 *
 * The rule: code that creates one has checked that all its elements are inside the file.  It may be strided,
 * as torch.save writes a transposed matrix; reading makes it dense. */
#ifndef KILN_IO_STORED_TENSOR_H
#define KILN_IO_STORED_TENSOR_H

#include "core/status.h"
#include "core/tensor.h"

enum { STORED_MAX_DIMS = 8 };

/* A rectangle of a tensor, seen as a matrix of its slowest dim by all others, and where its elements lie. */
struct stored_rect {
    int64_t at[2], n[2];       /* first row and column; numbers of rows and columns */
    const unsigned char *data; /* first element; may be unaligned */
    int64_t steps[2];          /* distances in elements to the next row and column; 0: the same one again */
};

/* Elements [begin, end), flattened, of the `n` rows and columns from `at` on. */
struct stored_part {
    int64_t at[2], n[2];
    int64_t begin, end;
};

struct stored_tensor {
    const char *name;        /* borrowed from the file's reader */
    const char *dtype_label; /* the format's name of the type */
    const char *unreadable;  /* why it cannot be read, worded to follow "it "; NULL if it can be */
    enum dtype dtype;        /* type of the elements, if they can be read */
    int n_dims;              /* 0 is a scalar */
    int64_t dims[STORED_MAX_DIMS];
    int64_t strides[STORED_MAX_DIMS]; /* in elements */
    const unsigned char *data;        /* first element; may be unaligned */
    size_t bytes;                     /* size of the elements, without gaps */
    const unsigned char *storage;     /* the bytes it is a view of; tensors of one storage share values */
    size_t storage_bytes;
    /* [n_rects] that tile the tensor or, if it is `turned`, its transpose; NULL: all lies at `data` */
    const struct stored_rect *rects;
    int64_t n_rects;
    bool turned;
    bool has_crc;
    uint32_t crc; /* CRC-32C of the storage, checked by reading */
};

/* Sets the strides of a dense tensor, and `bytes`, from its dims; false if the size is impossible. */
bool stored_tensor_make_dense(struct stored_tensor *t, size_t item_bytes);

/* Sets storage, data and `bytes` from untrusted dims and strides: false if an element would be outside the
 * `n` bytes of the storage.  `first` is the offset of the first element, in elements. */
bool stored_tensor_place(struct stored_tensor *t, size_t item_bytes, int64_t first, const void *storage,
                         size_t n);

/* Whether its elements are in order and without gaps: `bytes` of them at `data`, or in dense rectangles. */
bool stored_tensor_is_dense(const struct stored_tensor *t);

/* A matrix with its dims exchanged, over the same data. */
struct stored_tensor stored_tensor_transpose(const struct stored_tensor *t);

/* Copies it into `out`, a dense host tensor of the same shape; floating-point types convert to `out`'s, the
 * same type copies bit for bit.  STATUS_DATA if the shape or the kind of number differs, or a checksum is
 * wrong. */
struct status stored_tensor_read(const struct stored_tensor *t, tensor out);

/* Copies elements [first, first + count of out) of the flattened tensor into `out`, whatever its shape; types
 * convert as above.  The tensor must have enough elements. */
struct status stored_tensor_read_elements(const struct stored_tensor *t, int64_t first, tensor out);

/* Copies a part into `out`, which has the same number of elements; those of rows and columns that the tensor
 * lacks keep their values.  Types convert as above. */
struct status stored_tensor_read_part(const struct stored_tensor *t, const struct stored_part *part,
                                      tensor out);

/* Elements [begin, end) of a flattened matrix of `width` columns as rectangles, whose places alone are set:
 * the end of a row, complete rows, and the start of one.  Returns the number of rectangles. */
int stored_rect_split(struct stored_rect rects[3], int64_t begin, int64_t end, int64_t width);

/* The number of rectangles of a tensor, one if it is in one place, and rectangle `i`. */
int64_t stored_tensor_rects(const struct stored_tensor *t);
struct stored_rect stored_tensor_rect(const struct stored_tensor *t, int64_t i);

/* Rows and columns that two rectangles have in common: `a` without the rest; false if there are none. */
bool stored_rect_cut(struct stored_rect *a, const struct stored_rect *b, size_t item_bytes);

/* Whether both have the same type, shape and values, bit for bit.  A tensor that cannot be read is equal to
 * none. */
struct status stored_tensor_compare(bool *same, const struct stored_tensor *a, const struct stored_tensor *b);

/* The first element of `a` that, in the type of `b`, is not that of b, bit for bit; -1: there is none.  Both
 * can be read, and have the same number of elements. */
struct status stored_tensor_find_difference(int64_t *at, const struct stored_tensor *a,
                                            const struct stored_tensor *b);

/* Whether one type converts to the other: the types are equal, or both floating-point. */
bool stored_tensor_converts(enum dtype from, enum dtype to);

/* Converts `n` elements; either side may be unaligned. */
void stored_tensor_convert(enum dtype to_type, void *to, enum dtype from_type, const void *from, int64_t n);

/* Whether a name is not empty and has no control characters, so that messages can show it. */
bool stored_tensor_name_is_printable(const char *name, size_t n);

/* STATUS_DATA if two of the tensors have the same name. */
struct status stored_tensor_check_names(const struct stored_tensor *tensors, int n, const char *source);

/* The tensor of this name, borrowed; NULL if there is none. */
const struct stored_tensor *stored_tensor_find(const struct stored_tensor *tensors, int n, const char *name);

#endif
