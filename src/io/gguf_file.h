/* gguf_file: reads GGUF files, versions 2 and 3 (github.com/ggml-org/ggml, "GGUF"): lists their tensors, and
 * their pairs of keys and values, which gguf_pair.h reads.
 *
 * F32, F16 and BF16 are read in place; Q8_0 is decoded into memory when the file is opened; tensors of other
 * types are listed as unreadable. */
#ifndef KILN_IO_GGUF_FILE_H
#define KILN_IO_GGUF_FILE_H

#include "io/bump.h"
#include "io/file.h"
#include "io/gguf_pair.h"
#include "io/gguf_types.h"
#include "io/stored_tensor.h"

struct gguf_file {
    struct file_map map;           /* the file, if gguf_file_open mapped it */
    struct stored_tensor *tensors; /* [n], in the order of the file */
    int n;
    struct gguf_pair *pairs; /* [n_pairs], in the order of the file */
    int n_pairs;
    uint32_t n_heads;   /* "X.attention.head_count"; 0: the file does not say it */
    float norm_eps;     /* "X.attention.layer_norm_epsilon", or "layer_norm_rms_epsilon"; 0: the same */
    struct bump memory; /* holds the names and the keys */
    void **decoded;     /* [n_decoded] elements of Q8_0 as fp32 */
    int n_decoded;
};

/* Whether the bytes begin like such a file. */
bool gguf_file_is_one(const void *bytes, size_t n);

/* Maps the file and checks all but the values of its tensors.  STATUS_DATA says what is wrong. */
struct status gguf_file_open(struct gguf_file *f, const char *path);

/* Opens it for its keys, with its tensors of Q8_0 unreadable: nothing is decoded. */
struct status gguf_file_open_keys(struct gguf_file *f, const char *path);

/* Whether the file at the path begins like one; false if it cannot be read. */
bool gguf_file_is_at(const char *path);

/* The pair of a key; NULL: the file has none. */
const struct gguf_pair *gguf_file_find(const struct gguf_file *f, const char *key);

/* The tensor of a name; NULL: the file has none. */
const struct stored_tensor *gguf_file_tensor(const struct gguf_file *f, const char *name);

/* Reads bytes as gguf_file_open reads a file; the caller keeps them until the close, and `source` names them
 * in messages. */
struct status gguf_file_parse(struct gguf_file *f, const void *bytes, size_t n, const char *source);

/* Safe on a zeroed struct and after a failed open. */
void gguf_file_close(struct gguf_file *f);

#endif
