/* hdf5_absent: io/hdf5_file.h in a build without libhdf5. */
#include "io/hdf5_file.h"

#include <stddef.h>

static struct status absent(const char *path)
{
    return status_error(STATUS_USAGE,
                        "%s: this kiln was built without HDF5; install libhdf5 and build again with "
                        "-DKILN_HDF5=ON, or use a token store",
                        path);
}

const char *hdf5_file_version(void)
{
    return NULL;
}

struct status hdf5_file_has(const char *path, const char *name, bool *has)
{
    (void)name;
    *has = false;
    return absent(path);
}

struct status hdf5_file_measure(const char *path, struct hdf5_array *arrays, int n)
{
    (void)arrays, (void)n;
    return absent(path);
}

struct status hdf5_file_read(const char *path, const struct hdf5_array *arrays, int n)
{
    (void)arrays, (void)n;
    return absent(path);
}

struct status hdf5_file_write(const char *path, const struct hdf5_array *arrays, int n)
{
    (void)arrays, (void)n;
    return absent(path);
}
