/* shard_directory: the HDF5 files of a directory, and the JSON file next to it that says how they were
 * packed.
 *
 * The rule: the files are those whose names end in .hdf5 or .h5, in byte order; if some of their names
 * contain the wanted word ("training" or "test"), only those count.  Packed data DIR has DIR_metadata.json
 * next to it, as the replaced packing tool writes it. */
#ifndef KILN_DATA_SHARD_DIRECTORY_H
#define KILN_DATA_SHARD_DIRECTORY_H

#include "core/status.h"

#include <stdint.h>

struct shard_list {
    char **paths; /* [n], owned */
    int64_t n;
    bool named; /* the names contain the word */
};

/* Whether the directory has HDF5 files and no token store. */
bool shard_directory_is_one(const char *directory);

enum { SHARD_DIRECTORY_PATH_BYTES = 1024 };

/* Finds the files for `word` ("training" or "test"): in `directory` itself or, as `kiln prepare --format
 * hdf5` writes them, in DIRECTORY/word.  If there are none: false, and the directory itself. */
bool shard_directory_find(char found[SHARD_DIRECTORY_PATH_BYTES], const char *directory, const char *word);

/* Finds the test shards that belong to `training`, a directory called "training": in DIRECTORY/../test.
 * False if there are none, or the directory has another name. */
bool shard_directory_find_test(char found[SHARD_DIRECTORY_PATH_BYTES], const char *training);

/* Lists the files for `word`.  STATUS_DATA if there are none. */
struct status shard_directory_list(struct shard_list *list, const char *directory, const char *word);
void shard_list_fini(struct shard_list *list);

/* Statistics of the packing.  Lengths are in tokens, and S is the length of a pack. */
struct shard_packing {
    int64_t seq_length;   /* S */
    int64_t n_sequences;  /* sequences before packing */
    int64_t n_packs;      /* packs after it */
    int64_t n_tokens;     /* tokens of all sequences */
    int64_t n_strategies; /* distinct lists of the lengths in a pack */
    /* the most frequent, as indices in the sorted list of strategies; -1: there are fewer */
    int64_t top_strategies[8];
};

/* Reads avg_seq_per_sample of the metadata; *found is false without the file.  STATUS_DATA if it lacks the
 * key. */
struct status shard_directory_read_average(const char *directory, bool *found, double *average);

/* Writes the metadata file of a directory, with the replaced tool's keys. */
struct status shard_directory_write_packing(const char *directory, const struct shard_packing *p);

#endif
