/* bert_stream: a micro-batch as the model sees it, on the model's device: sequences laid end to end. */
#ifndef KILN_NN_BERT_STREAM_H
#define KILN_NN_BERT_STREAM_H

#include "core/tensor.h"

/* All i32.  T tokens, B sequences, M masked positions; data/bert_batch.h tells what each holds. */
struct bert_stream {
    tensor ids;           /* [T] */
    tensor types;         /* [T] */
    tensor positions;     /* [T] */
    tensor row_keys;      /* [T, 2] */
    tensor cu_seqlens;    /* [streams + 1], streams = B or B + 1 with the tail */
    tensor masked_rows;   /* [M] */
    tensor masked_labels; /* [M] */
    tensor cls_rows;      /* [B] */
    tensor nsp_labels;    /* [B] */
    tensor span_labels;   /* [B, 2] */
    int64_t max_seqlen;
    double n_pairs; /* sum of the squared lengths of sequences; 0 while planning */
};

#endif
