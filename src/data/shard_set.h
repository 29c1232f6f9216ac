/* shard_set: what `kiln prepare --format hdf5` leaves in its output directory:
 *
 *   training/kiln_training_0.hdf5, ...   test/kiln_test_0.hdf5, ... from the held-out part, if there is any
 *   training_metadata.json, test_metadata.json   packed only: data/shard_directory.h
 *   vocab.txt (the files of the vocabulary), tokenizer_config.json
 *
 * The token store that the samples are drawn from, and the shards, are made in a temporary directory in DIR
 * (io/temporary.h); the rule: nothing stands under its final name before all of it is written. */
#ifndef KILN_DATA_SHARD_SET_H
#define KILN_DATA_SHARD_SET_H

#include "data/shard_writer.h"
#include "corpus/store_builder.h"
#include "io/temporary.h"

struct shard_set_config {
    const char *output_dir;
    const struct tokenizer *tokenizer;
    bool overwrite, packed;
    int64_t max_seq_length, max_predictions_per_seq, dupe_factor, n_shards;
    double masked_lm_prob, short_seq_prob;
    uint64_t seed;
    struct temporary *work; /* where all is made: the caller's, and shard_set_begin's to fill */
};

/* STATUS_USAGE if a flag is out of its range, or the directory has shards already and may not lose them;
 * STATUS_DATA if the tokenizer lacks what samples are made of. */
struct status shard_set_check(const struct shard_set_config *c);

/* Makes the empty directory in which the caller builds the token stores (corpus/store_builder.h). */
struct status shard_set_begin(const struct shard_set_config *c,
                              char store_directory[STORE_BUILDER_PATH_BYTES]);

/* Writes the shards of the stores and puts everything in place.  reports[STORE_HELDOUT].n_shards is 0 if
 * nothing was held out. */
struct status shard_set_write(const struct shard_set_config *c,
                              struct shard_writer_report reports[STORE_COUNT]);

/* Removes what is temporary.  To be called after begin, whatever came of it. */
void shard_set_abandon(const struct shard_set_config *c);

#endif
