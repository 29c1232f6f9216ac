/* hdf5_file: integer arrays in HDF5 files; the only file that uses libhdf5.
 *
 * The rule: libhdf5 crashes on damaged files, so they are read in a separate process that may crash
 * (data/shard_process.h); the training process may not call these functions on a user's file.  Writing goes
 * through memory: the library makes the file's image, and io/file.h writes it completely or not at all. The
 * same arrays give the same bytes.
 *
 * A dataset that kiln writes has the CRC-32C of its values, in little-endian order and in the type of struct
 * hdf5_array, as the attribute kiln_crc32c; it is compared when they are read.
 *
 * In a build without libhdf5 (KILN_HDF5=OFF) every function returns an error that says so (hdf5_absent.c). */
#ifndef KILN_IO_HDF5_FILE_H
#define KILN_IO_HDF5_FILE_H

#include "core/status.h"

#include <stdint.h>

enum hdf5_type { HDF5_I8, HDF5_I32 };

/* An array of dims[0] or dims[0] x dims[1] integers, little endian and row-major. */
struct hdf5_array {
    const char *name; /* name of the dataset, in the root group */
    enum hdf5_type type;
    int n_dims; /* 1 or 2 */
    int64_t dims[2];
    void *data; /* borrowed */
};

/* "1.10.8", or NULL in a build without it. */
const char *hdf5_file_version(void);

/* Whether the file has something of this name in its root group. */
struct status hdf5_file_has(const char *path, const char *name, bool *has);

/* Fills in `dims` of arrays[n].  STATUS_DATA if the file is not HDF5, or if a dataset is missing, does not
 * hold integers, or does not have n_dims dimensions. */
struct status hdf5_file_measure(const char *path, struct hdf5_array *arrays, int n);

/* Reads arrays[n], whose `dims` must be those of the file, into `data`.  Values outside the type's range
 * become its nearest one.  STATUS_DATA if they are not those of the dataset's checksum, where it has one. */
struct status hdf5_file_read(const char *path, const struct hdf5_array *arrays, int n);

/* Writes arrays[n], compressed with deflate, as the file `path`, completely or not at all. */
struct status hdf5_file_write(const char *path, const struct hdf5_array *arrays, int n);

#endif
