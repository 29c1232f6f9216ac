/* document_output: a store of complete documents being written: PREFIX.bin, .idx and .json.
 *
 * The rule: it grows under other names in the same directory, and its files get their names when all is
 * complete; an old description goes first and the new one comes last, so no store is described by
 * another's. */
#ifndef KILN_CORPUS_DOCUMENT_OUTPUT_H
#define KILN_CORPUS_DOCUMENT_OUTPUT_H

#include "corpus/document_shuffle.h"
#include "corpus/input_files.h"
#include "io/dir_lock.h"
#include "io/token_store.h"

/* The treatment of a store that is there already. */
enum document_output_rule {
    DOCUMENT_OUTPUT_NEW,     /* none may be there */
    DOCUMENT_OUTPUT_REPLACE, /* the store is replaced */
    DOCUMENT_OUTPUT_OWN,     /* the store is replaced if `maker` made it; else it must equal the new one */
};

struct document_output {
    char prefix[FILE_PATH_BYTES];
    char work[FILE_PATH_BYTES]; /* path under which the store grows */
    enum document_output_rule rule;
    const char *maker; /* token_store_info's made_by; NULL: it is the user's */
    struct dir_lock lock;
    struct indexed_writer writer;
    /* Shuffles the documents.  Its directory is empty where documents are written as they come. */
    struct document_shuffle shuffle;
    struct indexed_sums sums;
    bool is_committed, keeps; /* complete under `work`; keeps: a later run continues it */
};

/* Sets the paths of *o, a zeroed struct.  STATUS_USAGE: the path is too long. */
struct status document_output_name(struct document_output *o, const char *prefix);

/* Locks the output for this run, unless it is dry, and checks what is there.  STATUS_USAGE: a file that the
 * rule does not allow, or that is one of the inputs; STATUS_IO: another run writes it, or it cannot be
 * written. */
struct status document_output_claim(struct document_output *o, const struct input_files *inputs,
                                    enum document_output_rule rule, bool dry_run);

/* Opens the store, and with a seed the parts to shuffle.  STATUS_IO. */
struct status document_output_open(struct document_output *o, int64_t vocab_size,
                                   const struct document_shuffle_config *shuffle);

/* Makes all durable and fills in its place; and opens the store there again.  Not for shuffled documents. */
struct status document_output_save(struct document_output *o, struct indexed_place *place);
struct status document_output_continue(struct document_output *o, int64_t vocab_size,
                                       const struct indexed_place *from);

/* Appends a sequence to a document; and ends the document.  A failure is that of document_output_status. */
void document_output_add(struct document_output *o, const int32_t *ids, int64_t n);
void document_output_end_document(struct document_output *o);
struct status document_output_status(const struct document_output *o);

/* Documents so far. */
int64_t document_output_count(const struct document_output *o);

/* Completes the files; fills in the counts of `info`, whose vocabulary the caller has set.  STATUS_USAGE: the
 * store that is there must be the same, and is not. */
struct status document_output_complete(struct document_output *o, struct token_store_info *info);

/* Gives the files their names.  It can be repeated if it was interrupted, in another run too. */
struct status document_output_move(const struct document_output *o);

/* Completes and moves. */
struct status document_output_finish(struct document_output *o, struct token_store_info *info);

/* STATUS_USAGE: a file of the store is there already. */
struct status document_output_check_new(const struct document_output *o);

/* Removes the incomplete files, unless it keeps them, and unlocks.  Safe after document_output_name and after
 * a finish. */
void document_output_close(struct document_output *o);

#endif
