/* store_builder: sentences of tokens to the token stores of a directory: DIR/train and DIR/heldout.
 *
 * Documents are stored as parts of at most 128 sentences, and each part is held out or not by a keyed hash of
 * its number, so that even a corpus of one book has held-out text.  The last part is kept until the end: if
 * one of the stores would have no documents, the part goes there, so both have some whenever there are two
 * parts (and the fraction is above 0).
 *
 * The rule: the same text, vocabulary and settings give the same bytes; nothing exists under the final names
 * before the commit, or after a commit that failed. */
#ifndef KILN_CORPUS_STORE_BUILDER_H
#define KILN_CORPUS_STORE_BUILDER_H

#include "corpus/document_ids.h"
#include "io/token_store.h"
#include "text/tokenizer.h"

/* About two pages: long enough for a sample of 512 tokens and the sentences after it, short enough that 2 %
 * of a book is a few parts. */
enum { STORE_BUILDER_PART_SENTENCES = 128, STORE_BUILDER_PATH_BYTES = 1024 };

enum store_builder_store { STORE_TRAIN, STORE_HELDOUT, STORE_COUNT };

struct store_builder_config {
    const struct tokenizer *tokenizer; /* borrowed */
    double holdout_fraction;           /* of the parts, in [0, 1) */
    uint64_t seed;                     /* of the choice of parts */
    const char *directory;             /* borrowed; exists */
};

struct store_builder {
    struct store_builder_config config;
    struct indexed_writer writers[STORE_COUNT];
    struct token_store_sums sums[STORE_COUNT];
    char prefixes[STORE_COUNT][STORE_BUILDER_PATH_BYTES];
    struct buf ids;                             /* int32_t each: of the current part */
    size_t ends[STORE_BUILDER_PART_SENTENCES];  /* of its sentences, in tokens */
    int n_sentences;                            /* of the current part */
    bool part_ended;                            /* it is complete, but not yet assigned to a store */
    int64_t n_parts;                            /* the current one not included */
    struct token_store_info infos[STORE_COUNT]; /* after the commit; n_documents 0: no such store */
};

/* "DIR/train" or "DIR/heldout". */
struct status store_builder_prefix(char prefix[STORE_BUILDER_PATH_BYTES], const char *directory,
                                   enum store_builder_store store);

/* The name, such as "train.idx", of a file of a store in the directory; NULL if it has none. */
const char *store_builder_find_existing(const char *directory);

/* `b` must not be moved while it is open. */
struct status store_builder_open(struct store_builder *b, struct store_builder_config config);

/* Adds the sentences of a document or, unless `begins`, of the next piece of the previous document. */
struct status store_builder_add(struct store_builder *b, const struct document_ids *d, bool begins);

/* Renames the stores into place, replacing old ones; with holdout_fraction 0, or a single part, only the
 * train store.  STATUS_DATA if there was no sentence.  Frees everything except `infos` and `n_parts`. */
struct status store_builder_commit(struct store_builder *b);

/* Abandons the stores: removes what was written.  Safe after a commit. */
void store_builder_abandon(struct store_builder *b);

#endif
