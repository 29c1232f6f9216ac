/* shard_set: the output directory of `kiln prepare --format hdf5`:
 *
 *   training/kiln_training_0.hdf5, ...   test/kiln_test_0.hdf5, ... from the held-out part, if there is any
 *   training_metadata.json, test_metadata.json   packed only: data/shard_directory.h
 *   vocab.txt (the files of the vocabulary), tokenizer_config.json
 *
 * The token store that the samples are drawn from, and the shards, are made in a temporary directory in DIR
 * (io/temporary.h).  The rule: nothing has its final name before all of it is written. */
#ifndef KILN_DATA_SHARD_SET_H
#define KILN_DATA_SHARD_SET_H

#include "data/shard_writer.h"
#include "corpus/store_builder.h"
#include "io/temporary.h"

struct shard_set_config {
    const char *output_dir;
    const struct tokenizer *tokenizer;
    bool overwrite, packed;
    bool whole_word_masks;
    int64_t max_seq_length, max_predictions_per_seq, dupe_factor, n_shards;
    double masked_lm_prob, short_seq_prob;
    uint64_t seed;
    struct temporary *work; /* the temporary directory: owned by the caller, set by shard_set_begin */
};

/* STATUS_USAGE if a flag is out of its range, or the directory already has shards and overwriting is not
 * allowed; STATUS_DATA if the tokenizer lacks a special token of samples. */
struct status shard_set_check(const struct shard_set_config *c);

/* Makes the empty directory in which the caller builds the token stores (corpus/store_builder.h). */
struct status shard_set_begin(const struct shard_set_config *c,
                              char store_directory[STORE_BUILDER_PATH_BYTES]);

/* Writes the shards of the stores and puts everything in place.  reports[STORE_HELDOUT].n_shards is 0 if
 * nothing was held out. */
struct status shard_set_write(const struct shard_set_config *c,
                              struct shard_writer_report reports[STORE_COUNT]);

/* Removes the temporary directory.  Call it after begin, even if that failed. */
void shard_set_abandon(const struct shard_set_config *c);

#endif
