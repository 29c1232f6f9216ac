/* bert_records: converts pre-training records in memory, in the two layouts of the replaced system, to the
 * ragged stream.
 *
 * padded: a record is one sequence, zero padded to S tokens and P predictions.
 * packed: a record is up to D = 3 sequences end to end; input_mask holds the number 1, 2, 3 of the sequence,
 *         positions restart in each, predictions of all of them follow one another.
 *
 * The rule: every value is checked before it is used, so a damaged file is an error that names record, field
 * and value. Source: the HDF5 data sets of create_pretraining_data and of its packing tool; a list of
 * predictions ends at the first position 0. */
#ifndef KILN_DATA_BERT_RECORDS_H
#define KILN_DATA_BERT_RECORDS_H

#include "data/text_batch.h"

enum { BERT_RECORDS_MAX_PACKED = 3 };

/* Borrowed arrays of n records; those that only packed records have are NULL in padded ones. */
struct bert_records {
    int64_t n, seq_length, n_predictions; /* N S P, P over all sequences of a record */
    int32_t vocab_size;
    bool packed;
    const int32_t *input_ids;           /* [N, S] */
    const void *input_mask;             /* [N, S] padded: i8, 1 for tokens, 0 for padding; packed: i32, the
                                             * number of the sequence, 1, 2, 3 */
    const int8_t *segment_ids;          /* [N, S] 0, then 1 in each sequence */
    const int32_t *positions;           /* packed: [N, S] from 0 in each sequence */
    const int32_t *masked_lm_positions; /* [N, P] places in the record, ascending, ended by 0 */
    const int32_t *masked_lm_ids;       /* [N, P] */
    const int32_t *next_sentence_positions; /* packed: [N, D] place of each [CLS] */
    const int8_t *next_sentence_labels;     /* [N], packed [N, D]; 0 or 1 */
    const int32_t *next_sentence_weights;   /* packed: [N, D] 1 present, 0 absent */
};

/* Appends the sequence of record `index`, or the 1 to 3 of a packed one, with keys sequence_key,
 * sequence_key + 1, and so on, to a batch that has space for them (text_batch_add).  STATUS_DATA names the
 * record, the field and the value; the batch is then unusable until it is cleared. */
struct status bert_records_add(const struct bert_records *r, int64_t index, int32_t sequence_key,
                               struct batch *b);

#endif
