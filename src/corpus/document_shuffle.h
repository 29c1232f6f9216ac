/* document_shuffle: documents of tokens in an order that the seed draws, in memory that does not grow with
 * them.
 *
 * The rule: document d of the input has the key hash(seed, d), and documents come out by rising keys: so the
 * order depends on the seed and the number of documents alone, not on memory.  Documents are first
 * distributed to files by the first bits of their keys, in the order of the input; then each file is sorted,
 * or distributed again if it is larger than the memory. */
#ifndef KILN_CORPUS_DOCUMENT_SHUFFLE_H
#define KILN_CORPUS_DOCUMENT_SHUFFLE_H

#include "core/buf.h"
#include "io/indexed.h"

struct document_shuffle_config {
    int64_t seed; /* below 0: documents keep their order */
    uint64_t memory_bytes;
    uint64_t expected_bytes; /* approximate bytes of all tokens */
};

/* Files that grow together by appending, in bounded memory and with one open at a time.  They are scratch: a
 * run that dies leaves them, and nothing continues them. */
struct scatter_files {
    char prefix[FILE_PATH_BYTES];
    int n;
    size_t buffer_bytes;    /* size of the buffer of each file */
    unsigned char *buffers; /* [n, buffer_bytes]; NULL: not open */
    size_t *buffered;       /* [n] */
    struct status status;   /* the first failure */
};

struct document_shuffle {
    struct document_shuffle_config config;
    char directory[FILE_PATH_BYTES]; /* directory of the files; "": not open */
    struct scatter_files files;
    int bits; /* bits of a key that choose its first file */
    int token_bytes;
    int64_t n_documents, n_files;
    struct buf sizes, tokens; /* sequences of the document that is being added */
};

/* Makes a directory of its own; it replaces what a killed run has left there. */
struct status document_shuffle_open(struct document_shuffle *s, const struct document_shuffle_config *c,
                                    const char *directory, int token_bytes);

/* Appends a sequence to the document; and ends the document.  A failure is that of
 * document_shuffle_status. */
void document_shuffle_add(struct document_shuffle *s, const int32_t *ids, int64_t n);
void document_shuffle_end_document(struct document_shuffle *s);
struct status document_shuffle_status(const struct document_shuffle *s);

/* Adds all documents to the writer, whose tokens take the same number of bytes.  STATUS_PREEMPTED after a
 * signal. */
struct status document_shuffle_pour(struct document_shuffle *s, struct indexed_writer *w);

/* Removes the directory.  Safe on a zeroed struct. */
void document_shuffle_close(struct document_shuffle *s);

#endif
