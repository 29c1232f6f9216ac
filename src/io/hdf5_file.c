#include "io/hdf5_file.h"

#include "core/hash.h"
#include "core/regular_file.h"
#include "io/deflate_blocks.h"
#include "io/file.h"

#include <hdf5.h>
#include <stdlib.h>
#include <unistd.h>

#if !H5_VERSION_GE(1, 10, 3)
#    error "kiln needs libhdf5 1.10.3 or later, which has H5Dwrite_chunk; or configure with -DKILN_HDF5=OFF"
#endif

/* The CRC-32C of a dataset's values, as an attribute of it; files of other programs have none. */
static const char SUM[] = "kiln_crc32c";

enum { DEFLATE_LEVEL = 1 }; /* recorded in the file for readers, who do not need it */

/* The size that the rows of a chunk come to: about what h5py guesses for files of this kind. */
static const size_t CHUNK_BYTES = 1 << 16;

/* The image grows by this much while a file is made in memory. */
static const size_t IMAGE_STEP = 1 << 20;

const char *hdf5_file_version(void)
{
    return H5_VERS_INFO + sizeof "HDF5 library version: " - 1;
}

/* Silences the library, which would print its errors to standard error, and disables plugins, which are
 * foreign code. */
static void tame(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
}

static herr_t take_description(unsigned i, const H5E_error2_t *error, void *text)
{
    if (i == 0) {
        snprintf(text, 160, "%s", error->desc);
    }
    return 0;
}

/* The error that libhdf5 describes, innermost first. */
static struct status library_error(enum status_code code, const char *path, const char *what)
{
    char text[160] = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_description, text);
    return status_error(code, "%s: cannot %s: %s", path, what, text);
}

static struct status open_file(hid_t *file, const char *path)
{
    int fd;
    size_t n;
    tame();
    *file = -1;
    TRY(regular_file_open(&fd, &n, path)); /* first, since libhdf5 would block on a pipe */
    close(fd);
    *file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    return *file >= 0 ? status_ok() : library_error(STATUS_DATA, path, "open it as HDF5");
}

struct status hdf5_file_has(const char *path, const char *name, bool *has)
{
    hid_t file;
    TRY(open_file(&file, path));
    htri_t exists = H5Lexists(file, name, H5P_DEFAULT);
    struct status s =
        exists >= 0 ? status_ok() : library_error(STATUS_DATA, path, "look for datasets in the file");
    *has = exists > 0;
    H5Fclose(file);
    return s;
}

static struct status check_type(const char *path, const char *name, hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    if (type < 0) {
        return library_error(STATUS_DATA, path, "read the type of a dataset");
    }
    bool is_integer = H5Tget_class(type) == H5T_INTEGER;
    H5Tclose(type);
    return is_integer ? status_ok()
                      : status_error(STATUS_DATA, "%s: the dataset %s does not hold integers", path, name);
}

static struct status get_dims(const char *path, const char *name, hid_t dataset, int n_dims, int64_t *dims)
{
    hsize_t sizes[H5S_MAX_RANK];
    hid_t space = H5Dget_space(dataset);
    int n = space < 0 ? -1 : H5Sget_simple_extent_dims(space, sizes, NULL);
    if (n < 0) {
        struct status s = library_error(STATUS_DATA, path, "read the shape of a dataset");
        H5Sclose(space);
        return s;
    }
    H5Sclose(space);
    FAIL_IF(n != n_dims, STATUS_DATA, "%s: the dataset %s has %d dimensions, but should have %d", path, name,
            n, n_dims);
    for (int i = 0; i < n; i++) {
        FAIL_IF(sizes[i] > INT64_MAX, STATUS_DATA, "%s: the dataset %s has %llu rows or columns", path, name,
                (unsigned long long)sizes[i]);
        dims[i] = (int64_t)sizes[i];
    }
    return status_ok();
}

static struct status open_dataset(hid_t *dataset, hid_t file, const char *path, const char *name)
{
    *dataset = -1;
    FAIL_IF(H5Lexists(file, name, H5P_DEFAULT) <= 0, STATUS_DATA, "%s has no dataset %s", path, name);
    *dataset = H5Dopen2(file, name, H5P_DEFAULT);
    return *dataset >= 0 ? status_ok() : library_error(STATUS_DATA, path, "open a dataset");
}

static struct status measure_dataset(hid_t file, const char *path, struct hdf5_array *a)
{
    hid_t dataset;
    TRY(open_dataset(&dataset, file, path, a->name));
    struct status s = check_type(path, a->name, dataset);
    if (!failed(s)) {
        s = get_dims(path, a->name, dataset, a->n_dims, a->dims);
    }
    H5Dclose(dataset);
    return s;
}

struct status hdf5_file_measure(const char *path, struct hdf5_array *arrays, int n)
{
    hid_t file;
    TRY(open_file(&file, path));
    struct status s = status_ok();
    for (int i = 0; i < n && !failed(s); i++) {
        s = measure_dataset(file, path, &arrays[i]);
    }
    H5Fclose(file);
    return s;
}

static hid_t type_of(const struct hdf5_array *a)
{
    return a->type == HDF5_I8 ? H5T_STD_I8LE : H5T_STD_I32LE;
}

static size_t integer_bytes(const struct hdf5_array *a)
{
    return a->type == HDF5_I8 ? 1 : 4;
}

static size_t row_bytes(const struct hdf5_array *a)
{
    return integer_bytes(a) * (a->n_dims == 2 ? (size_t)a->dims[1] : 1);
}

static uint32_t sum_of(const struct hdf5_array *a)
{
    return hash_crc32c(0, a->data, (size_t)a->dims[0] * row_bytes(a));
}

/* Compares what was read with the attribute, if there is one. */
static struct status check_sum(hid_t dataset, const char *path, const struct hdf5_array *a)
{
    uint32_t wanted = 0;
    htri_t has_sum = H5Aexists(dataset, SUM);
    if (has_sum == 0) {
        return status_ok();
    }
    hid_t attribute = has_sum < 0 ? -1 : H5Aopen(dataset, SUM, H5P_DEFAULT);
    hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
    bool is_one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    bool was_read = is_one && H5Aread(attribute, H5T_NATIVE_UINT32, &wanted) >= 0;
    H5Sclose(space);
    H5Aclose(attribute);
    return was_read && wanted == sum_of(a)
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: the values of the dataset %s do not match its checksum: the file is "
                              "damaged, so copy it or make it again; a program that changes the values must "
                              "delete the attribute %s",
                              path, a->name, SUM);
}

static struct status read_dataset(hid_t file, const char *path, const struct hdf5_array *a)
{
    struct hdf5_array there = *a;
    TRY(measure_dataset(file, path, &there));
    FAIL_IF(there.dims[0] != a->dims[0] || (a->n_dims == 2 && there.dims[1] != a->dims[1]), STATUS_DATA,
            "%s: the shape of the dataset %s has changed since it was opened", path, a->name);
    hid_t dataset;
    TRY(open_dataset(&dataset, file, path, a->name));
    struct status s = status_ok();
    if (H5Dread(dataset, type_of(a), H5S_ALL, H5S_ALL, H5P_DEFAULT, a->data) < 0) {
        s = status_context(library_error(STATUS_DATA, path, "read a dataset"), "%s", a->name);
    } else {
        s = check_sum(dataset, path, a);
    }
    H5Dclose(dataset);
    return s;
}

struct status hdf5_file_read(const char *path, const struct hdf5_array *arrays, int n)
{
    hid_t file;
    TRY(open_file(&file, path));
    struct status s = status_ok();
    for (int i = 0; i < n && !failed(s); i++) {
        s = read_dataset(file, path, &arrays[i]);
    }
    H5Fclose(file);
    return s;
}

/* The number of rows in a chunk: chunks have complete rows. */
static hsize_t chunk_rows(const struct hdf5_array *a)
{
    hsize_t rows = row_bytes(a) < CHUNK_BYTES ? CHUNK_BYTES / row_bytes(a) : 1;
    return rows < (hsize_t)a->dims[0] ? rows : (hsize_t)a->dims[0];
}

/* No time stamp, which would make equal files differ. */
static hid_t make_layout(const struct hdf5_array *a)
{
    hsize_t chunk[2] = {chunk_rows(a), (hsize_t)a->dims[1]};
    hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    if (layout >= 0 && (H5Pset_chunk(layout, a->n_dims, chunk) < 0 || H5Pset_obj_track_times(layout, 0) < 0 ||
                        H5Pset_shuffle(layout) < 0 || H5Pset_deflate(layout, DEFLATE_LEVEL) < 0)) {
        H5Pclose(layout);
        return -1;
    }
    return layout;
}

struct chunk_writer {
    hid_t dataset;
    const char *path;
    const struct hdf5_array *array;
};

/* Each library call clears the list of errors, so it is read before anything is closed. */
static struct status not_made(const char *path, const struct hdf5_array *a)
{
    return status_context(library_error(STATUS_INTERNAL, path, "make a dataset"), "%s", a->name);
}

/* Chunks come as the filters of the layout have them. */
static struct status take_chunk(void *context, int64_t index, const void *packed, size_t n)
{
    const struct chunk_writer *w = context;
    hsize_t at[2] = {(hsize_t)index * chunk_rows(w->array), 0};
    return H5Dwrite_chunk(w->dataset, H5P_DEFAULT, 0, at, n, packed) < 0 ? not_made(w->path, w->array)
                                                                         : status_ok();
}

static struct status write_chunks(hid_t dataset, const char *path, const struct hdf5_array *a)
{
    struct chunk_writer w = {dataset, path, a};
    struct deflate_blocks blocks = {.data = a->data,
                                    .n_bytes = (size_t)a->dims[0] * row_bytes(a),
                                    .block_bytes = (size_t)chunk_rows(a) * row_bytes(a),
                                    .integer_bytes = integer_bytes(a)};
    return deflate_blocks_run(&blocks, take_chunk, &w);
}

static struct status write_sum(hid_t dataset, const char *path, const struct hdf5_array *a)
{
    uint32_t sum = sum_of(a);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute =
        space < 0 ? -1 : H5Acreate2(dataset, SUM, H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    bool written = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_UINT32, &sum) >= 0;
    struct status s = written ? status_ok() : not_made(path, a);
    H5Aclose(attribute);
    H5Sclose(space);
    return s;
}

static struct status write_dataset(hid_t file, const char *path, const struct hdf5_array *a)
{
    hsize_t dims[2] = {(hsize_t)a->dims[0], (hsize_t)a->dims[1]};
    hid_t layout = make_layout(a);
    hid_t space = layout < 0 ? -1 : H5Screate_simple(a->n_dims, dims, NULL);
    hid_t dataset = -1;
    if (space >= 0) {
        dataset = H5Dcreate2(file, a->name, type_of(a), space, H5P_DEFAULT, layout, H5P_DEFAULT);
    }
    struct status s = dataset < 0 ? not_made(path, a) : write_chunks(dataset, path, a);
    s = failed(s) ? s : write_sum(dataset, path, a);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(layout);
    return s;
}

/* Writes the image of the open file to `path`. */
static struct status put_image(hid_t file, const char *path)
{
    ssize_t n = H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(file, NULL, 0);
    if (n <= 0) {
        return library_error(STATUS_INTERNAL, path, "make it in memory");
    }
    void *image = malloc((size_t)n);
    FAIL_IF(image == NULL, STATUS_MEMORY, "out of memory for %s (%zd bytes)", path, n);
    struct status s = status_ok();
    if (H5Fget_file_image(file, image, (size_t)n) != n) {
        s = library_error(STATUS_INTERNAL, path, "make it in memory");
    } else {
        s = file_write_atomic(path, image, (size_t)n);
    }
    free(image);
    return s;
}

struct status hdf5_file_write(const char *path, const struct hdf5_array *arrays, int n)
{
    tame();
    FAIL_IF(H5Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0, STATUS_INTERNAL,
            "this libhdf5 was built without zlib, which shards need");
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = -1;
    if (access >= 0 && H5Pset_fapl_core(access, IMAGE_STEP, 0) >= 0) {
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    }
    struct status s = file >= 0 ? status_ok() : library_error(STATUS_INTERNAL, path, "make it in memory");
    for (int i = 0; i < n && !failed(s); i++) {
        s = write_dataset(file, path, &arrays[i]);
    }
    if (!failed(s)) {
        s = put_image(file, path);
    }
    H5Fclose(file);
    H5Pclose(access);
    return s;
}
