/* gguf_writer: writes GGUF files, version 3 (github.com/ggml-org/ggml, "GGUF"), which llama.cpp loads: pairs
 * of a key and a value, descriptions of the tensors, and their elements, each tensor at a multiple of 32
 * bytes.  It knows nothing of models.
 *
 * The rule: nothing is at the path before the file is complete; only a buffer of elements is in memory. */
#ifndef KILN_IO_GGUF_WRITER_H
#define KILN_IO_GGUF_WRITER_H

#include "core/buf.h"
#include "core/tensor.h"
#include "io/file.h"
#include "io/gguf_types.h"

/* A tensor of the file. */
struct gguf_item {
    const char *name;
    tensor shape; /* dims, 1 or 2; without memory */
    enum gguf_type type;
};

struct gguf_writer {
    struct buf pairs;
    uint64_t n_pairs;
    struct file_writer file;
    const struct gguf_item *items; /* [n], borrowed until the commit */
    int n, next;                   /* the item that the next put supplies */
    unsigned char *room;           /* buffer for elements in the type of the file */
};

/* Begins a file in memory: keys first, then tensors. */
void gguf_writer_init(struct gguf_writer *w);

/* A pair; keys are those of GGUF's specification. */
void gguf_put_text(struct gguf_writer *w, const char *key, const char *text);
void gguf_put_bytes(struct gguf_writer *w, const char *key, const void *text, size_t n); /* as a text */
void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_put_f32(struct gguf_writer *w, const char *key, float value);
void gguf_put_bool(struct gguf_writer *w, const char *key, bool value);

/* A list of n values of a type: then n times a text, an i32 or an f32. */
void gguf_put_list(struct gguf_writer *w, const char *key, enum gguf_value type, uint64_t n);
void gguf_put_list_text(struct gguf_writer *w, const char *text, size_t n);
void gguf_put_list_i32(struct gguf_writer *w, int32_t value);
void gguf_put_list_f32(struct gguf_writer *w, float value);

/* Writes the pairs and the descriptions of the tensors.  After a failure there is nothing to abandon. */
struct status gguf_writer_open(struct gguf_writer *w, const char *path, const struct gguf_item *items, int n);

/* Writes the next tensor from `t`, dense fp32 of the shape of its item.  A value that fp16 cannot hold fails
 * the commit with STATUS_NUMERIC. */
void gguf_writer_put(struct gguf_writer *w, tensor t);

/* Commits the file as file_writer_commit does: durable and in place, or removed.  Frees the writer either
 * way. */
struct status gguf_writer_commit(struct gguf_writer *w);

/* Frees a writer that was not opened. */
void gguf_writer_discard(struct gguf_writer *w);

#endif
