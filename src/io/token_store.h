/* token_store: the output of `kiln prepare`: PREFIX.bin and PREFIX.idx (io/indexed.h; each sequence is a
 * sentence), and PREFIX.json, which says with which vocabulary and settings.
 *
 * The rule: PREFIX.json is written last and removed first, so a store without it is unfinished and
 * refused. */
#ifndef KILN_IO_TOKEN_STORE_H
#define KILN_IO_TOKEN_STORE_H

#include "io/indexed.h"

#include <stdatomic.h>

struct token_store_info {
    char kiln_version[32]; /* version of the program that wrote it */
    char made_by[32];      /* the command that keeps it for itself, and may replace it; "": the user's */
    uint64_t vocab_hash;   /* the tokenizer's */
    int64_t vocab_size;
    bool lower_case;
    /* the sequences of a document are in turn context and answer (data/gpt/answer_examples.h) */
    bool has_answers;
    int64_t n_documents, n_sentences, n_tokens;
    uint32_t bin_crc, idx_crc; /* CRC-32C of the files */
};

struct token_store {
    struct indexed index;
    struct token_store_info info;
    struct indexed_sums sums;
};

/* Opens the three files and checks that they belong together, by sizes and counts: whoever uses the tokens
 * compares the checksums, too. */
struct status token_store_open(struct token_store *s, const char *prefix);

/* Opens as token_store_open does a store that need not name its vocabulary: without PREFIX.json, as
 * preprocess_data.py leaves it, info.vocab_size is 0. */
struct status token_store_open_any(struct token_store *s, const char *prefix);
void token_store_close(struct token_store *s);

/* Opens as token_store_open_any does, and compares the checksums that there are: for a program that reads all
 * of a store once.  A run that trains on it has data/store_check.h. */
struct status token_store_open_whole(struct token_store *s, const char *prefix);

/* Reads everything and compares the checksums.  STATUS_DATA names the damaged file, and the range of bytes if
 * the store has checksums of its blocks.  Another thread may set *stop (NULL: none does) to end it early. */
struct status token_store_verify(const struct token_store *s, const char *prefix, const atomic_bool *stop);

/* STATUS_DATA unless the store was made with the vocabulary of this hash and size. */
struct status token_store_check_vocab(const struct token_store *s, const char *prefix, uint64_t vocab_hash,
                                      int64_t vocab_size);

/* Writes PREFIX.json.  Without `sums`, damage cannot be located later. */
struct status token_store_write_info(const char *prefix, const struct token_store_info *info,
                                     const struct indexed_sums *sums);

#endif
