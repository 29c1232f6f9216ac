/* tf_bundle: a checkpoint of TensorFlow, as a prefix: PREFIX.index lists tensors, PREFIX.data-SSSSS-of-NNNNN hold their
 * bytes (tensorflow/core/util/tensor_bundle, protobuf/tensor_bundle.proto).
 *
 * The index is a table (io/sorted_table.h) from names to messages of Protocol Buffers.  Reading a tensor compares its
 * checksum.  Strings and tensors that are stored in slices are listed, and cannot be read. */
#ifndef KILN_IO_TF_BUNDLE_H
#define KILN_IO_TF_BUNDLE_H

#include "core/bytes.h"
#include "io/file.h"
#include "io/stored_tensor.h"
#include "io/sorted_table.h"

enum { BUNDLE_MAX_SHARDS = 99999 }; /* what the names of shards have digits for */

struct tf_bundle {
    struct file_map index;
    struct file_map *shards; /* [n_shards], those that hold no tensor not opened */
    int n_shards;
    struct sorted_table table;     /* owns the names */
    struct stored_tensor *tensors; /* [n], in the order of names */
    int n;
};

/* Maps PREFIX.index and every shard that it needs.  STATUS_DATA names the file and the tensor that are wrong. */
struct status tf_bundle_open(struct tf_bundle *b, const char *prefix);

/* The same over bytes that the caller keeps until the close, of an index and of all its shards. */
struct status tf_bundle_parse(struct tf_bundle *b, struct span index, const struct span *shards, int n_shards,
                              const char *source);

/* Safe on a zeroed struct and after a failed open. */
void tf_bundle_close(struct tf_bundle *b);

#endif
