/* backend: a device with its table of operations, by name.
 *
 * The cuda table is in a separate library, libkiln_cuda.so, which is loaded on first use from the program's
 * directory, the one above it, ../lib, or the system's paths.  Its own dependencies are found by
 * library_search. */
#ifndef KILN_OPS_BACKEND_H
#define KILN_OPS_BACKEND_H

#include "core/buf.h"
#include "core/log.h"
#include "ops/ops.h"

struct backend {
    const struct device *device;
    const struct ops *ops;
};

/* Opens "cpu", "cuda", or "auto", which is the cpu as long as the cuda table has not been tested on a GPU.
 * STATUS_USAGE says why cuda is not available, or that the name is not one of these. */
struct status backend_find(struct backend *b, const char *name);

/* Logs which device computes and why, so that nobody reserves cards and trains on processors unawares: `name`
 * is that of backend_find.  A warning says that an accelerator is there which "auto" does not take. */
void backend_announce(const struct backend *b, const char *name);

/* The kind of an accelerator whose driver is in a root's /dev ("" is this machine's): "a GPU of NVIDIA", "a
 * Gaudi"; NULL: none. */
const char *backend_visible(const char *root);

/* Describes the GPU in `text` [n], or fails with the reason why there is none. */
struct status backend_describe_gpu(char *text, size_t n);

/* The algorithms that the GPU's library has chosen, one line each, in `text` [n]; "" without a GPU. */
void backend_describe_choices(char *text, size_t n);

/* Appends a line for the device, and one for each library that computes on it. */
void backend_describe(struct buf *text, const struct backend *b);

/* The symbol `kiln_cuda_entry` of libkiln_cuda.so.  It only works with a program of the same version and
 * layout. */
struct backend_entry {
    char version[32];
    size_t entry_bytes, device_bytes, exec_bytes, ops_bytes, tensor_bytes;
    const struct ops *ops;
    /* Describes the GPU, as backend_describe_gpu. */
    struct status (*probe)(const struct device **device, char *text, size_t n);
    void (*log_to)(void (*sink)(enum log_level level, const char *line)); /* before anything else is called */
    void (*describe)(char *text, size_t n); /* lists the chosen algorithms, as backend_describe_choices */
};

/* The first fields that this program expects in an entry. */
#define BACKEND_ENTRY_LAYOUT                                                                                 \
    .version = KILN_VERSION, .entry_bytes = sizeof(struct backend_entry),                                    \
    .device_bytes = sizeof(struct device), .exec_bytes = sizeof(struct exec),                                \
    .ops_bytes = sizeof(struct ops), .tensor_bytes = sizeof(tensor)

#endif
