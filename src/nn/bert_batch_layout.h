/* bert_batch_layout: the fields of a batch that BERT reads besides its tokens (core/batch.h). */
#ifndef KILN_NN_BERT_BATCH_LAYOUT_H
#define KILN_NN_BERT_BATCH_LAYOUT_H

#include "core/batch.h"

/* T tokens, M masked positions, B sequences. */
enum bert_field {
    BERT_TYPES,         /* [T] segment, 0 or 1 */
    BERT_MASKED_ROWS,   /* [M] rows of the stream, ascending; padded with row 0 */
    BERT_MASKED_LABELS, /* [M] the original ids; -1 in padding */
    BERT_CLS_ROWS,      /* [B] row of each [CLS] */
    BERT_CLS_KEYS,      /* [B, 2] its dropout address */
    BERT_NSP_LABELS,    /* [B] 0 = next, 1 = random, -1 = none */
    BERT_SPAN_LABELS,   /* [B, 2] first and last position of the answer in the sequence, -1 = none */
    BERT_CLASS_LABELS, /* of a classifier only: [B] or [T] class, -1 = none; or [B, C] f32 targets, NaN = none */
    BERT_N_FIELDS,
};

/* Without BERT_CLASS_LABELS, which a model with a classifier adds. */
extern const struct batch_layout bert_batch_layout;

#endif
