/* llmc_file: the model files of karpathy/llm.c (its train_gpt2.py, write_model): 256 numbers of 32 bits, then
 * the tensors, each kind for all layers, in fp32 (version 3) or bf16 (version 5).  Matrices are [out, in].
 *
 * Tensors are listed under the names that llm.c's own code has for them, those of layer N as "h.N.NAME". */
#ifndef KILN_IO_LLMC_FILE_H
#define KILN_IO_LLMC_FILE_H

#include "io/bump.h"
#include "io/file.h"
#include "io/stored_tensor.h"

enum { LLMC_MAGIC = 20240326, LLMC_F32 = 3, LLMC_BF16 = 5, LLMC_WORD_MULTIPLE = 128 };

/* What the header says.  Rows of the table of words are padded to a multiple of LLMC_WORD_MULTIPLE. */
struct llmc_sizes {
    int64_t version; /* LLMC_F32 or LLMC_BF16 */
    int64_t max_length, n_words, n_layers, n_heads, channels;
};

struct llmc_file {
    struct file_map map; /* the file, if llmc_file_open mapped it */
    struct llmc_sizes sizes;
    struct stored_tensor *tensors; /* [n], in the order of the file; of "wte" the rows of words */
    int n;
    struct bump memory; /* holds the names */
};

/* Whether the bytes begin like any file of llm.c: its numbers are dates of 2024. */
bool llmc_file_is_one(const void *bytes, size_t n);

/* Maps the file.  STATUS_DATA: it is of another kind or version, or its size is not what its header says. */
struct status llmc_file_open(struct llmc_file *f, const char *path);

/* The same over bytes that the caller keeps until the close; `source` names them in messages. */
struct status llmc_file_parse(struct llmc_file *f, const void *bytes, size_t n, const char *source);

/* Safe on a zeroed struct and after a failed open. */
void llmc_file_close(struct llmc_file *f);

/* Gives the values of a tensor, of a layer or -1: dense, fp32, host; valid until the next call. */
typedef struct status llmc_source(void *context, const char *name, int64_t layer, tensor *values);

/* Writes a file, a tensor at a time; padded rows are zeros.  Nothing is at the path before it is whole. */
struct status llmc_file_write(const char *path, const struct llmc_sizes *sizes, llmc_source *source,
                              void *context);

#endif
