/* indexed: a store of token sequences, in the .bin/.idx format of Megatron-LM, byte for byte.
 *
 *   PREFIX.idx = "MMIDIDX\0\0", u64 version 1, u8 dtype (4 = i32, 8 = u16), u64 n_sequences, u64 n_bounds,
 *                i32 sizes[n_sequences], i64 byte_pointers[n_sequences], i64 bounds[n_bounds]
 *   PREFIX.bin = the tokens of all sequences, end to end
 *
 * Document d is the sequences [bounds[d], bounds[d + 1]).  For BERT a sequence is a sentence.  Everything is
 * little endian and, because of the odd header, unaligned.
 *
 * The rule: opening checks the complete index against the lengths of both files, so that no later access can
 * leave them; token ids are not checked here, because their limit is the vocabulary's.
 *
 * Source: MMapIndexedDataset in Megatron-DeepSpeed, megatron/data/indexed_dataset.py. */
#ifndef KILN_IO_INDEXED_H
#define KILN_IO_INDEXED_H

#include "io/append_file.h"

#include <stdint.h>
#include <string.h>

struct indexed {
    struct file_map bin, idx;
    int64_t n_sequences;
    int64_t n_documents;
    int64_t n_tokens;
    int token_bytes;                 /* 2: u16, 4: i32 */
    const unsigned char *sizes;      /* [n_sequences] i32, in the mapped index */
    const unsigned char *pointers;   /* [n_sequences] i64, likewise */
    const unsigned char *boundaries; /* [n_documents + 1] i64, likewise */
};

/* Maps PREFIX.bin and PREFIX.idx.  STATUS_DATA names the file, what is wrong and where. */
struct status indexed_open(struct indexed *x, const char *prefix);
void indexed_close(struct indexed *x);

static inline int64_t indexed_load_i64(const unsigned char *p, int64_t index)
{
    int64_t value;
    memcpy(&value, p + index * (int64_t)sizeof value, sizeof value);
    return value;
}

/* Number of tokens in front of `sequence`, which may be n_sequences. */
static inline int64_t indexed_offset(const struct indexed *x, int64_t sequence)
{
    return sequence == x->n_sequences ? x->n_tokens
                                      : indexed_load_i64(x->pointers, sequence) / x->token_bytes;
}

/* First sequence of `document`, which may be n_documents. */
static inline int64_t indexed_first_sequence(const struct indexed *x, int64_t document)
{
    return indexed_load_i64(x->boundaries, document);
}

/* The document that `sequence` is part of; O(log n_documents). */
int64_t indexed_find_document(const struct indexed *x, int64_t sequence);

/* Copies the tokens [begin, begin + n) of the complete store to ids[n]. */
void indexed_copy(const struct indexed *x, int32_t *ids, int64_t begin, int64_t n);

/* The head of an index. */
enum { INDEXED_MAGIC_BYTES = 9, INDEXED_VERSION = 1, INDEXED_CODE_I32 = 4, INDEXED_CODE_U16 = 8 };
extern const char indexed_magic[INDEXED_MAGIC_BYTES];

/* ---- writing (indexed_writer.c) ---- */

/* The files that a store grows in: PREFIX.bin, and PREFIX.sizes (i32 each) and PREFIX.bounds (i64 each,
 * without the first, 0), of which the index is made.  The caller removes the latter two with their directory,
 * once nothing can have to continue them. */
enum indexed_part { INDEXED_BIN, INDEXED_SIZES, INDEXED_BOUNDS, INDEXED_N_PARTS };

/* How far a store has come: writing can continue there, in another run too. {0} is the beginning. */
struct indexed_place {
    struct append_mark parts[INDEXED_N_PARTS];
};

/* The checksums of the blocks of a store's files; empty if an earlier version of kiln made it. */
struct indexed_sums {
    struct block_sums bin, idx;
};

/* A store being written, in memory that does not grow with it. */
struct indexed_writer {
    struct append_file parts[INDEXED_N_PARTS];
    struct file_writer idx;
    struct block_sums idx_sums;
    int token_bytes;
    int64_t n_sequences;
    int64_t n_tokens;
    int64_t n_documents;
};

/* Writes in a directory that is the caller's own: what is there is not finished.  A token takes 2 bytes if
 * the vocabulary has fewer than 65,500 pieces, else 4. */
struct status indexed_writer_open(struct indexed_writer *w, const char *prefix, int64_t vocab_size);

/* Opens a writer at a place that indexed_writer_save returned.  STATUS_DATA: the files are not those of that
 * place. */
struct status indexed_writer_continue(struct indexed_writer *w, const char *prefix, int64_t vocab_size,
                                      const struct indexed_place *from);

/* Packs ids[n] as tokens[n] of token_bytes each, 2 or 4; for 2 bytes, an id must be below 65,536. */
void indexed_pack(void *tokens, const int32_t *ids, int64_t n, int token_bytes);

/* Appends one sequence; ids must be below the vocabulary's size.  Failure is sticky. */
void indexed_writer_add(struct indexed_writer *w, const int32_t *ids, int64_t n);

/* Appends one sequence of tokens that indexed_pack made with the store's bytes per token. */
void indexed_writer_add_packed(struct indexed_writer *w, const void *tokens, int64_t n);

/* Ends a document: the sequences added since the last call. */
void indexed_writer_end_document(struct indexed_writer *w);

/* The first failure so far, so that a full disk ends a long run soon. */
struct status indexed_writer_status(const struct indexed_writer *w);

/* Makes all durable that was added, and fills in its place. */
struct status indexed_writer_save(struct indexed_writer *w, struct indexed_place *place);

/* Completes PREFIX.bin and PREFIX.idx, and closes.  The CRC-32C of each is in parts[INDEXED_BIN].mark.crc and
 * idx.crc; the caller frees *sums, which may be NULL.  After a failure the writer is still open. */
struct status indexed_writer_commit(struct indexed_writer *w, struct indexed_sums *sums);

/* Removes what was written.  Does nothing after a commit and on a zeroed writer. */
void indexed_writer_abandon(struct indexed_writer *w);

/* Leaves what was written for a later run.  Safe on a zeroed writer. */
void indexed_writer_close(struct indexed_writer *w);

#endif
