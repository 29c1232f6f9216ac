/* document_output: a store of whole documents being written: PREFIX.bin, .idx and .json.
 *
 * The rule: it grows under other names in the same directory, and its files get their names when all is
 * complete; an old description goes first and the new one comes last, so no store is described by
 * another's. */
#ifndef KILN_CORPUS_DOCUMENT_OUTPUT_H
#define KILN_CORPUS_DOCUMENT_OUTPUT_H

#include "corpus/document_shuffle.h"
#include "corpus/input_files.h"
#include "io/token_store.h"

struct document_output {
    char prefix[FILE_PATH_BYTES];
    char work[FILE_PATH_BYTES]; /* where it grows */
    struct indexed_writer writer;
    struct document_shuffle shuffle; /* its directory is empty: documents are written as they come */
    struct indexed_sums sums;
    bool is_committed;
};

/* In a zeroed struct.  STATUS_USAGE: the path is too long. */
struct status document_output_name(struct document_output *o, const char *prefix);

/* STATUS_USAGE: a file is there already, unless it may be replaced, or is one of the inputs; STATUS_IO. */
struct status document_output_check(const struct document_output *o, const struct input_files *inputs,
                                    bool overwrite, bool dry_run);

struct status document_output_open(struct document_output *o, int64_t vocab_size,
                                   const struct document_shuffle_config *shuffle);

/* Appends a sequence to a document; and ends the document.  A failure is that of document_output_status. */
void document_output_add(struct document_output *o, const int32_t *ids, int64_t n);
void document_output_end_document(struct document_output *o);
struct status document_output_status(const struct document_output *o);

/* Documents so far. */
int64_t document_output_count(const struct document_output *o);

/* Completes the files; fills in the counts of `info`, whose vocabulary the caller has set. */
struct status document_output_finish(struct document_output *o, struct token_store_info *info);

/* Removes what is not complete.  Safe on a zeroed struct and after a finish. */
void document_output_close(struct document_output *o);

#endif
