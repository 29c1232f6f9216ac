/* onnx_file: ONNX models in files: writes a graph with its weights, and lists the weights of a file.
 *
 * A message of Protocol Buffers has less than 2 GiB.  The weights of a larger model are in a second file
 * beside the first, NAME.data, each at a multiple of 4,096 bytes so that it can be mapped (onnx.ai/onnx:
 * external data). */
#ifndef KILN_IO_ONNX_FILE_H
#define KILN_IO_ONNX_FILE_H

#include "core/tensor.h"
#include "io/file.h"
#include "io/onnx_graph.h"
#include "io/stored_tensor.h"

#define ONNX_DATA_SUFFIX    ".data"
#define ONNX_MOST_ONE_BYTES 2000000000U /* of weights in the first file: the graph needs room too */

/* Gives the value of a weight of the graph: fp32, host, dense, one or two dims, valid until the end of the
 * write. */
typedef tensor onnx_source(const void *context, const char *name);

/* Writes the model PATH, and PATH.data if its weights have more than `most_bytes`, at most
 * ONNX_MOST_ONE_BYTES.  Each file is whole or not there. */
struct status onnx_file_write(const char *path, const struct onnx_graph *g, uint64_t most_bytes,
                              onnx_source *source, const void *context);

/* The weights and constants of a file. */
struct onnx_file {
    struct file_map map, data;     /* the file and, if a tensor is there, the one beside it */
    struct stored_tensor *tensors; /* [n], in the order of the file */
    int n;
    char *names; /* of the tensors */
};

/* STATUS_DATA: missing, damaged, or its data is elsewhere than in PATH.data. */
struct status onnx_file_open(struct onnx_file *f, const char *path);

/* The same over bytes that the caller keeps; `data` is the content of the second file, of 0 bytes if there is
 * none. */
struct status onnx_file_parse(struct onnx_file *f, const void *bytes, size_t n, const void *data,
                              size_t data_bytes, const char *source);

/* Safe on a zeroed struct and after a failed open. */
void onnx_file_close(struct onnx_file *f);

#endif
