/* shard_loader: batches of BERT pre-training from HDF5 shards, whose samples and masks were drawn when the
 * shards were written.
 *
 * The rule: the contents of step s are a pure function of (seed, s).  Record i of step s is number
 * g = (s - 1) * records per step + i of the run.  An epoch is all records of all files: files in an order
 * keyed by (seed, epoch), the records of each in an order keyed by (seed, epoch, file).  Epochs lie end to
 * end; nothing is dropped, and one file is enough.
 *
 * A record is a padded sequence or a pack of up to three; train_batch_size counts records, as in the replaced
 * system, which divides the micro-batches of packed data by the sequences per pack.  In a batch every
 * sequence is separate: padding and packing have been removed. */
#ifndef KILN_DATA_SHARD_LOADER_H
#define KILN_DATA_SHARD_LOADER_H

#include "data/batch_source.h"
#include "data/shard_directory.h"
#include "data/shard_process.h"

struct shard_loader_config {
    const char *directory;
    const char *word; /* word in the names of its files, if in any: "training" or "test" */
    int64_t vocab_size;
    int32_t pad_id;
    uint64_t seed;
    struct batch_flags batch; /* before packing is accounted for; files keep their order even in_order */
    bool allow_packed;        /* false: packed data is an error */
};

struct shard_loader {
    struct shard_loader_config config;
    struct shard_list files;
    int64_t *n_records; /* [files.n] */
    int64_t n_total;
    struct shard_shape shape;      /* shape of all files, with n = 0 */
    double sequences_per_record;   /* 1 unless packed */
    int64_t micro_size, n_micro;   /* records of a micro-batch, micro-batches of a step */
    struct shard_process *process; /* only this and `cursor` change after opening */
    struct shard_cursor *cursor;
};

/* Opens every file and checks that they belong together. */
struct status shard_loader_open(struct shard_loader *l, struct shard_loader_config config);

/* Safe on a zeroed struct. */
void shard_loader_close(struct shard_loader *l);

/* The loader as a source, which it must outlive; it must not be moved.  A held-out sample is a record. */
struct batch_source shard_loader_source(const struct shard_loader *l);

#endif
