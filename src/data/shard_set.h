/* shard_set: the HDF5 files of one phase, as `kiln prepare` writes them from token stores:
 *
 *   training/kiln_training_0.hdf5, ...   test/kiln_test_0.hdf5, ... from the held-out part, if there is any
 *   training_metadata.json, test_metadata.json   packed only: data/shard_directory.h
 *   vocab.txt (the files of the vocabulary), tokenizer_config.json
 *
 * or, with the replaced scripts' names, DATASET_training_0.hdf5 and DATASET_test_0.hdf5 and so on: padded
 * ones in the directory itself. */
#ifndef KILN_DATA_SHARD_SET_H
#define KILN_DATA_SHARD_SET_H

#include "corpus/store_builder.h"
#include "data/shard_writer.h"

struct shard_set_config {
    const char *store_dir; /* holds the stores */
    const char *directory; /* directory of the files; made if missing */
    const char *dataset;   /* the replaced scripts' names, with this one; NULL: kiln's */
    const struct tokenizer *tokenizer;
    bool packed, keeps_existing; /* see shard_writer_config */
    int64_t dupe_factor;
    int64_t n_shards[STORE_COUNT];     /* 0: the number that makes files of about 64 MiB */
    struct bert_loader_config samples; /* store and special tokens are set later */
};

/* Checks a configuration.  STATUS_USAGE if a flag is out of its range; STATUS_DATA if the tokenizer lacks a
 * special token of samples. */
struct status shard_set_check(const struct shard_set_config *c);

/* Writes the shards of the stores, and the vocabulary.  reports[STORE_HELDOUT].n_shards is 0 if nothing was
 * held out. STATUS_PREEMPTED after a signal. */
struct status shard_set_write(const struct shard_set_config *c,
                              struct shard_writer_report reports[STORE_COUNT]);

#endif
