/* npy_file: arrays in numpy's format, one to a file: numbers of one type in C order, after a header of text.
 *
 * Source: numpy's "A simple file format for NumPy arrays", versions 1.0 and 2.0. */
#ifndef KILN_IO_NPY_FILE_H
#define KILN_IO_NPY_FILE_H

#include "io/file.h"

enum { NPY_MOST_DIMS = 2 };

/* A file that is mapped. */
struct npy_file {
    struct file_map map;
    const void *data; /* [dims[0], dims[1]], aligned to its numbers; dims[1] is 1 for one dimension */
    int64_t dims[NPY_MOST_DIMS];
};

/* Opens an array of this type ("<i4": 4 bytes, little-endian, signed; "<u4": unsigned) with n_dims
 * dimensions.  STATUS_DATA, naming what is there instead: no such file, another type, order or number of
 * dimensions, or a file that is shorter or longer than its header says. */
struct status npy_file_open(struct npy_file *f, const char *path, const char *type, int n_dims);
void npy_file_close(struct npy_file *f);

/* Reads the bytes that f->map holds as npy_file_open reads a file. */
struct status npy_file_parse(struct npy_file *f, const char *path, const char *type, int n_dims);

/* Opens a file for what numpy.save writes, and puts the header; the caller puts the numbers and commits. */
struct status npy_file_create(struct file_writer *w, const char *path, const char *type, int n_dims,
                              const int64_t *dims);

/* An array of fp32 whose rows come one after the other: at any time, and after a crash, a reader finds those
 * that were put. */
struct npy_rows {
    const char *path; /* borrowed */
    int fd;           /* -1: not open */
    int64_t n, width;
    bool syncs; /* rows are on disk before their number is: after a power failure too */
};

/* Opens a new or emptied file, or with `appends` continues the rows of one that is there.  STATUS_DATA:
 * that has rows of another width, or is no such array; STATUS_IO. */
struct status npy_rows_open(struct npy_rows *r, const char *path, int64_t width, bool appends);

/* Maps the rows that were put so far; a writer that was interrupted, or still writes, may have left part of
 * others after them.  STATUS_DATA as npy_file_open. */
struct status npy_rows_map(struct npy_file *f, const char *path);

/* Writes n rows, and then their number into the header.  STATUS_IO. */
struct status npy_rows_put(struct npy_rows *r, const float *rows, int64_t n);
struct status npy_rows_close(struct npy_rows *r); /* STATUS_IO: not all could be written */

#endif
