/* store_builder: sentences of tokens to the token stores of a directory: DIR/train and DIR/heldout.
 *
 * Documents are stored as parts of at most 128 sentences, and each part is held out or not by a keyed hash of
 * its number, so that even a corpus of one book has held-out text.  The last part is kept until the end: if
 * one of the stores would have no documents, the part goes there, so both have some whenever there are two
 * parts (and the fraction is above 0).
 *
 * The rule: the same text, vocabulary and settings give the same bytes, however often the builder was saved
 * and continued.  The directory is the builder's own; without DIR/train.json its content is not finished. */
#ifndef KILN_CORPUS_STORE_BUILDER_H
#define KILN_CORPUS_STORE_BUILDER_H

#include "core/bytes.h"
#include "corpus/document_ids.h"
#include "io/token_store.h"
#include "text/tokenizer.h"

/* About two pages: long enough for a sample of 512 tokens and the sentences after it, short enough that 2 %
 * of a book is a few parts. */
enum { STORE_BUILDER_PART_SENTENCES = 128, STORE_BUILDER_PATH_BYTES = 1024 };

enum store_builder_store { STORE_TRAIN, STORE_HELDOUT, STORE_COUNT };

struct store_builder_config {
    const struct tokenizer *tokenizer; /* borrowed */
    double holdout_fraction;           /* fraction of the parts, in [0, 1) */
    uint64_t seed;                     /* seed of the choice of parts */
    const char *directory;             /* borrowed; exists */
};

/* The progress of the stores, without the sentences of the current part.  {0} is the beginning. */
struct store_builder_place {
    struct indexed_place stores[STORE_COUNT];
    int64_t n_parts;
    bool part_ended;
};

struct store_builder {
    struct store_builder_config config;
    struct indexed_writer writers[STORE_COUNT];
    char prefixes[STORE_COUNT][STORE_BUILDER_PATH_BYTES];
    struct buf ids;                             /* tokens of the current part, int32_t each */
    size_t ends[STORE_BUILDER_PART_SENTENCES];  /* ends of the part's sentences, in tokens */
    int n_sentences;                            /* sentences of the current part */
    bool part_ended;                            /* the part is complete, but not yet assigned to a store */
    int64_t n_parts;                            /* the current one not included */
    struct token_store_info infos[STORE_COUNT]; /* results of the commit; n_documents 0: no such store */
};

/* "DIR/train" or "DIR/heldout". */
struct status store_builder_prefix(char prefix[STORE_BUILDER_PATH_BYTES], const char *directory,
                                   enum store_builder_store store);

/* `b` must not be moved while it is open. */
struct status store_builder_open(struct store_builder *b, struct store_builder_config config);

/* Continues where store_builder_save was called, in the same directory; `part` is what it appended.
 * STATUS_DATA if the files are others. */
struct status store_builder_continue(struct store_builder *b, struct store_builder_config config,
                                     const struct store_builder_place *from, struct span *part);

/* Begins another document. */
void store_builder_begin_document(struct store_builder *b);

/* Adds the sentences [first, end) of a document, or of a piece of one. */
struct status store_builder_add_sentences(struct store_builder *b, const struct document_ids *d,
                                          int64_t first, int64_t end);

/* Makes all durable, fills in *place, and appends the sentences of the current part to `part`. */
struct status store_builder_save(struct store_builder *b, struct store_builder_place *place,
                                 struct buf *part);

/* Completes the stores; with holdout_fraction 0, or a single part, only the train store.  STATUS_DATA if
 * there was no sentence.  After a failure the builder is still open, else all but `infos` and `n_parts` is
 * freed. */
struct status store_builder_commit(struct store_builder *b);

/* Removes the files that were written; or leaves them for a later run.  Both are safe after a commit. */
void store_builder_abandon(struct store_builder *b);
void store_builder_close(struct store_builder *b);

#endif
