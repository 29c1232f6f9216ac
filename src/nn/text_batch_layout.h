/* text_batch_layout: the fields of a batch that models of text read in addition to its tokens
 * (core/batch.h). */
#ifndef KILN_NN_TEXT_BATCH_LAYOUT_H
#define KILN_NN_TEXT_BATCH_LAYOUT_H

#include "core/batch.h"

/* T tokens, M masked positions, B sequences. */
enum text_field {
    TEXT_TYPES,         /* [T] segment, 0 or 1 */
    TEXT_MASKED_ROWS,   /* [M] rows of the stream, ascending; padded with row 0 */
    TEXT_MASKED_LABELS, /* [M] the original ids; -1 in padding */
    TEXT_CLS_ROWS,      /* [B] row of each [CLS] */
    TEXT_CLS_KEYS,      /* [B, 2] dropout address of each [CLS] */
    TEXT_PAIR_LABELS,   /* [B] 0 = next, 1 = random, -1 = none */
    TEXT_SPAN_LABELS,   /* [B, 2] first and last position of the answer in the sequence, -1 = none */
    /* [B] or [T] class, -1 = none; or [B, C] f32 targets, NaN = none; only with a classifier */
    TEXT_CLASS_LABELS,
    TEXT_N_FIELDS,
};

/* The fields of all models of text; a model with a classifier adds TEXT_CLASS_LABELS. */
extern const struct batch_layout text_batch_layout;

#endif
