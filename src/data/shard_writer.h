/* shard_writer: writes the samples of a token store as HDF5 files, for trainers that read those.
 *
 * The samples are those of the first dupe_factor epochs of training on the store, masks included: sample g of
 * data/bert/bert_loader is record g here, or is in a pack with others of its file.  The rule:
 * the same store and configuration give the same bytes. */
#ifndef KILN_DATA_SHARD_WRITER_H
#define KILN_DATA_SHARD_WRITER_H

#include "data/bert/bert_loader.h"
#include "data/shard_directory.h"

struct shard_writer_config {
    struct bert_loader_config samples; /* loader whose samples are written; its batch sizes are ignored */
    const char *directory;             /* directory of the files; exists */
    const char *name, *word;           /* names of the files: NAME_WORD_0.hdf5 and so on; NULL: "kiln" */
    int64_t dupe_factor;               /* epochs that are written */
    int64_t n_shards;                  /* 0: enough for files of about 64 MiB before compression */
    bool packed;
    bool keeps_existing; /* a file that is there is this run's, of before it was interrupted */
};

/* Counts of the files and sequences that were written. */
struct shard_writer_report {
    int64_t n_shards;
    struct shard_packing packing; /* if padded, each sequence counts as a pack */
};

/* Writes the files.  STATUS_PREEMPTED after a signal: the files that exist are complete. */
struct status shard_writer_run(struct shard_writer_report *report, const struct shard_writer_config *config);

#endif
