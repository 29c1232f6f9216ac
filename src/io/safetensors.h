/* safetensors: named tensors in one file (https://github.com/huggingface/safetensors, "Format").
 *
 * A file is: u64 length of the header, little-endian; the header, JSON from tensor name to dtype, shape and
 * the half-open byte range in the buffer, padded with spaces; the buffer, row-major and little-endian.
 *
 * The reader is stricter than the reference reader: a header of at most 16 MiB, no duplicate and no unknown
 * key, no control character in a name, shapes whose size is checked for overflow, and byte ranges that tile
 * the buffer exactly.  The reference reader and `transformers` read the writer's files, whose bytes depend
 * only on the tensors.  Neither reader nor writer knows what a model is.
 *
 * The format has no checksums.  The writer puts them into the text of "__metadata__", as "kiln_crc32c.NAME":
 * eight hexadecimal digits of the CRC-32C of the tensor's bytes.  A program that saves the tensors again
 * leaves them out, unless it copies the metadata. */
#ifndef KILN_IO_SAFETENSORS_H
#define KILN_IO_SAFETENSORS_H

#include "core/json.h"
#include "core/tensor.h"
#include "io/file.h"
#include "io/stored_tensor.h"

enum { SAFETENSORS_MAX_HEADER_BYTES = 16 << 20 };

#define SAFETENSORS_SUM "kiln_crc32c." /* prefix of a tensor's name in the key of its sum in the metadata */

struct safetensors {
    struct file_map map;           /* the file, if safetensors_open mapped it */
    json_t *header;                /* owns the names */
    const json_t *metadata;        /* "__metadata__", text to text; NULL if the file has none */
    struct stored_tensor *entries; /* [n], in the order of their data; of 0 to 4 dims, "BOOL" as DTYPE_U8 */
    int n;
};

/* Maps the file and checks all of its header, and where it has sums all of its data.  STATUS_DATA names the
 * tensor and what is wrong with it. */
struct status safetensors_open(struct safetensors *f, const char *path);

/* The header of bytes in memory, which the caller keeps until the close; `source` names them in messages. */
struct status safetensors_parse(struct safetensors *f, const void *bytes, size_t n, const char *source);

/* Whether the metadata has sums; and STATUS_DATA if it has, but not of every tensor, or one that is not the
 * tensor's.  Sums of tensors that are not there are ignored. */
bool safetensors_has_sums(const struct safetensors *f);
struct status safetensors_check_sums(const struct safetensors *f, const char *source);

/* Safe on a zeroed struct and after a failed open. */
void safetensors_close(struct safetensors *f);

/* The tensor of this name, borrowed; NULL if there is none. */
const struct stored_tensor *safetensors_find(const struct safetensors *f, const char *name);

/* The metadata's text about the slice that an entry is of a tensor (io/tensor_set.h); NULL: there is none,
 * and the entry is the complete tensor. */
const char *safetensors_slice_text(const struct safetensors *f, const struct stored_tensor *e);

/* One tensor in the writer's header; the tensor's data pointer is read for a sum only. */
struct safetensors_item {
    const char *name;
    tensor shape;      /* dtype and dims, 1 to 4 */
    const char *slice; /* text of the slice (tensor_slice_format); NULL: a complete tensor */
    bool summed;       /* the header gets `sum` */
    uint32_t sum;      /* safetensors_sum of the values */
};

/* The CRC-32C of the values of a dense host tensor. */
uint32_t safetensors_sum(tensor t);

/* A file being written.  The header is written first, then one put per item, in the order of the items. */
struct safetensors_writer {
    struct file_writer file;
    const struct safetensors_item *items; /* [n], borrowed until the commit */
    int n;
    int next; /* item that the next put must supply */
};

/* Nothing exists at `path` until the commit.  After a failure there is nothing to abandon. */
struct status safetensors_writer_open(struct safetensors_writer *w, const char *path,
                                      const struct safetensors_item *items, int n);

/* Writes the next item from `t`, a dense host tensor of its shape, converting floating-point types to the
 * item's. */
void safetensors_writer_put(struct safetensors_writer *w, tensor t);

/* Commits the file as file_writer_commit does: durable and in place, or removed. */
struct status safetensors_writer_commit(struct safetensors_writer *w);

#endif
