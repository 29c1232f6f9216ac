/* stream: a micro-batch on the model's device: sequences laid end to end, and the model's own fields
 * (core/batch.h). */
#ifndef KILN_NN_STREAM_H
#define KILN_NN_STREAM_H

#include "core/batch.h"
#include "core/tensor.h"

/* All i32.  T tokens. */
struct stream {
    tensor ids;        /* [T] */
    tensor positions;  /* [T] */
    tensor row_keys;   /* [T, 2] */
    tensor cu_seqlens; /* [streams + 1], with the tail */
    tensor fields[BATCH_MOST_FIELDS];
    int64_t max_seqlen;
    double n_pairs; /* of tokens and keys of their sequences; 0 while planning */

    /* With a cache of keys and values (core/batch.h), else null: [T], [streams + 1], [streams, pages]. */
    tensor slots, cu_keys, pages;
    int64_t max_keys;
};

#endif
