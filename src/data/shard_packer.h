/* shard_packer: padded HDF5 shards, however they were made, to packed ones: what
 * pack_pretraining_data_pytorch.py does.
 *
 * Each file's sequences are packed together (data/pack.h), and rows go to files of SHARD_PACKER_ROWS, the
 * last of which has what is left.  The rule: the same files and configuration give the same bytes, and no
 * sequence is left out. */
#ifndef KILN_DATA_SHARD_PACKER_H
#define KILN_DATA_SHARD_PACKER_H

#include "data/shard_directory.h"
#include "data/shard_process.h"

enum { SHARD_PACKER_ROWS = 4480 }; /* rows of a file, as in the replaced tool */

struct shard_packer_config {
    const char *from, *to;                         /* directories; `to` exists */
    int64_t row_length, max_predictions;           /* S, and P of a sequence; a row holds P + 3 */
    int64_t most;                                  /* sequences of a row */
    int64_t seed;                                  /* seed of the order of rows */
    void (*progress)(void *context, int64_t file); /* files done; NULL: nobody asks */
    void *context;
};

struct shard_packer {
    struct shard_packer_config config;
    struct shard_list files;
    struct shard_process process;
    struct shard_shape *shapes; /* [files.n] */
    int64_t n_sequences;        /* sequences of all files */
};

/* Opens every file and checks that it is padded and that its sequences can fit.  STATUS_DATA. */
struct status shard_packer_open(struct shard_packer *p, struct shard_packer_config config);

/* Safe on a zeroed struct. */
void shard_packer_close(struct shard_packer *p);

/* Writes OUTPUT_DIR/mixed_strategies_part_0.hdf5 and so on, then the metadata next to the directory: all, or
 * nothing new. STATUS_DATA names a record that cannot be packed. */
struct status shard_packer_run(struct shard_packer *p, struct shard_packing *packing, int64_t *n_files);

#endif
