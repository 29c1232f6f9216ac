/* tf_bundle: reads a TensorFlow checkpoint, which is named by a prefix: PREFIX.index lists the tensors, and
 * files PREFIX.data-SSSSS-of-NNNNN hold their bytes (tensorflow/core/util/tensor_bundle,
 * protobuf/tensor_bundle.proto).
 *
 * The index is a table (io/sorted_table.h) from names to Protocol Buffers messages.  Reading a tensor checks
 * its checksum.  Strings and tensors stored in slices are listed, but cannot be read. */
#ifndef KILN_IO_TF_BUNDLE_H
#define KILN_IO_TF_BUNDLE_H

#include "core/bytes.h"
#include "io/file.h"
#include "io/stored_tensor.h"
#include "io/sorted_table.h"

enum { BUNDLE_MAX_SHARDS = 99999 }; /* their file names have five digits */

struct tf_bundle {
    struct file_map index;
    struct file_map *shards; /* [n_shards]; those without tensors are not opened */
    int n_shards;
    struct sorted_table table;     /* owns the names */
    struct stored_tensor *tensors; /* [n], in the order of names */
    int n;
};

/* Maps PREFIX.index and the shards that hold tensors.  STATUS_DATA names the file and the tensor that are
 * wrong. */
struct status tf_bundle_open(struct tf_bundle *b, const char *prefix);

/* Reads the bytes of an index and all its shards as tf_bundle_open reads files.  The caller keeps them until
 * the close; `source` names them in messages. */
struct status tf_bundle_parse(struct tf_bundle *b, struct span index, const struct span *shards, int n_shards,
                              const char *source);

/* Safe on a zeroed struct and after a failed open. */
void tf_bundle_close(struct tf_bundle *b);

#endif
