/* tensor_file: opens a file of named tensors of any known format: safetensors, torch.save's, GGUF, or
 * a TensorFlow checkpoint by its prefix.  The content decides which format, not the name. */
#ifndef KILN_IO_TENSOR_FILE_H
#define KILN_IO_TENSOR_FILE_H

#include "io/gguf_file.h"
#include "io/safetensors.h"
#include "io/tf_bundle.h"
#include "io/torch_file.h"

enum tensor_file_format { TENSOR_FILE_SAFETENSORS, TENSOR_FILE_TORCH, TENSOR_FILE_BUNDLE, TENSOR_FILE_GGUF };

struct tensor_file {
    enum tensor_file_format format;
    /* [n], in the order of the file; io/stored_tensor.h reads and finds them */
    const struct stored_tensor *tensors;
    int n;
    union {
        struct safetensors safetensors;
        struct torch_file torch; /* torch.root also has the objects that are not tensors */
        struct tf_bundle bundle;
        struct gguf_file gguf;
    };
};

/* `path` is a file, or the prefix of a bundle (or its PREFIX.index).  STATUS_DATA: missing, damaged, or of an
 * unknown format. */
struct status tensor_file_open(struct tensor_file *f, const char *path);

/* The format of a file by how it begins; false: it may be safetensors, or nothing that is known. */
bool tensor_file_recognize(enum tensor_file_format *format, const void *bytes, size_t n);

/* Safe on a zeroed struct and after a failed open. */
void tensor_file_close(struct tensor_file *f);

/* After reading: file_map_check of all that is mapped; `path` names it in messages. */
struct status tensor_file_check(const struct tensor_file *f, const char *path);

/* Borrowed: the format's name for messages. */
const char *tensor_file_format_name(enum tensor_file_format format);

#endif
