/* bert_batch: one micro-batch of BERT pre-training on the host, as the model sees it: sequences laid end to end, no
 * padding between them.
 *
 * The stream is rounded up to a bucket of tokens; what is left over is one more sequence of [PAD] tokens that carries no
 * label, so it changes no loss and no gradient and nothing else needs a mask.  Masked positions are rounded up likewise,
 * with label -1. */
#ifndef KILN_DATA_BERT_BATCH_H
#define KILN_DATA_BERT_BATCH_H

#include "core/status.h"

#include <stdint.h>

enum {
    BERT_BATCH_TOKEN_BUCKET = 64,  /* tokens of a stream are a multiple of this */
    BERT_BATCH_MASKED_BUCKET = 16, /* so are masked positions */
};

/* Upper bounds of every micro-batch of a run, for planning. */
struct bert_batch_limits {
    int64_t n_tokens;    /* T: bucketed */
    int64_t n_sequences; /* B: the tail sequence included */
    int64_t n_masked;    /* M: bucketed */
    int64_t max_seqlen;
};

struct bert_batch {
    int64_t n_tokens;    /* T, bucketed */
    int64_t n_real_tokens;
    int64_t n_sequences; /* B real sequences; the tail is not counted */
    int64_t n_streams;   /* sequences in cu_seqlens: B, or B + 1 with a tail */
    int64_t n_masked;    /* M, bucketed */
    int64_t max_seqlen;  /* longest of cu_seqlens */

    int32_t *ids;           /* [T] */
    int32_t *types;         /* [T] segment, 0 or 1 */
    int32_t *positions;     /* [T] place in the sequence */
    int32_t *row_keys;      /* [T, 2] sequence in the global batch, position: the dropout address */
    int32_t *cu_seqlens;    /* [n_streams + 1] */
    int32_t *masked_rows;   /* [M] rows of the stream, ascending; rounded up with row 0 */
    int32_t *masked_labels; /* [M] the original ids; -1 in the rounding */
    int32_t *cls_rows;      /* [B] row of each [CLS] */
    int32_t *nsp_labels;    /* [B] 0 = next, 1 = random, -1 = none */
};

/* The global batch of one optimizer step: its micro-batches, and the counts that its losses are divided by. */
struct bert_step {
    int64_t n_micro;
    struct bert_batch *micro; /* [n_micro] */
    int64_t n_tokens;         /* real tokens of the whole global batch */
    int64_t n_sequences;
    int64_t n_masked; /* labels of the whole global batch, -1 not counted */
    int64_t n_nsp;
};

#endif
