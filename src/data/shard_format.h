/* shard_format: the arrays of an HDF5 file of pre-training samples, in the two layouts of the replaced
 * system.
 *
 *   padded  input_ids, input_mask, segment_ids [N, S]; masked_lm_positions, masked_lm_ids [N, P];
 *           next_sentence_labels [N]
 *   packed  input_ids, input_mask, segment_ids, positions [N, S]; masked_lm_positions, masked_lm_ids [N, P];
 *           next_sentence_positions, next_sentence_labels, next_sentence_weights [N, 3]
 *
 * In memory a shard is these arrays end to end, each at a multiple of 64 bytes, in the types that the
 * replaced system writes; files with other integer types are read all the same.  What the values mean, and
 * their checks, is data/bert/bert_records.h.
 *
 * Source: create_pretraining_data and pack_pretraining_data_pytorch of HabanaAI/Model-References 1.15.0. */
#ifndef KILN_DATA_SHARD_FORMAT_H
#define KILN_DATA_SHARD_FORMAT_H

#include "data/text_batch.h"
#include "io/hdf5_file.h"

#include <stddef.h>

enum { SHARD_MAX_ARRAYS = 9 };

struct shard_shape {
    int64_t n;             /* N records */
    int64_t seq_length;    /* S */
    int64_t n_predictions; /* P, over all sequences of a record */
    bool packed;
};

/* The arrays of a shard of this shape in `memory`; returns how many.  With NULL they have no data. */
int shard_format_arrays(struct hdf5_array arrays[SHARD_MAX_ARRAYS], const struct shard_shape *shape,
                        void *memory);

/* The memory that a shard of this shape takes. */
size_t shard_format_bytes(const struct shard_shape *shape);

/* Checks a shape.  STATUS_DATA unless the sizes are possible and a shard takes at most 4 GiB; `path` is for
 * the message. */
struct status shard_format_check(const struct shard_shape *shape, const char *path);

/* Measures a file.  It calls libhdf5, so only the process of data/shard_process may call it, or code that
 * wrote the file itself. */
struct status shard_format_measure(struct shard_shape *shape, const char *path);

/* Appends the sequences of record `index` of the shard in `memory`, with keys sequence_key, sequence_key + 1,
 * ...; bert_records says what is checked. */
struct status shard_format_add(struct batch *b, const struct shard_shape *shape, const void *memory,
                               int32_t vocab_size, int64_t index, int32_t sequence_key);

/* Sequences in the records of a packed shard, by its next_sentence_weights. */
int64_t shard_format_count_sequences(const struct shard_shape *shape, const void *memory);

/* Adds each label of the shard to counts[label]; labels outside [0, vocab_size) are left out. */
void shard_format_count_labels(double *counts, int64_t vocab_size, const struct shard_shape *shape,
                               const void *memory);

/* The place of a sequence: a record, its number in the record, and the tokens and predictions before it
 * there. */
struct shard_place {
    int64_t record;
    int slot;
    int64_t at, masked_at;
};

/* Writes the one sequence of `b` into the arrays of a shard in `memory`, which are zero where nothing was
 * written. */
void shard_format_put(void *memory, const struct shard_shape *shape, const struct shard_place *t,
                      const struct batch *b);

#endif
