/* attention_bits: which probabilities dropout keeps, one bit each, written by attention's forward for its
 * backward (struct attention, bits).  Drawing them again takes the backward many times as many instructions
 * as reading them.
 *
 * One layout for all kernels.  The queries of a sequence are split into tiles of 16, its keys into chunks of
 * 64.  A tile of a chunk is 32 words, one for each lane of a warp, in the order in which matrix instructions
 * hold squares of 16 x 16 (ops/cuda/kernels/matrix_code.cuh): query r and key c of it are in
 *
 *     word r % 8 * 4 + c % 8 / 2, bit c / 16 * 8 + c % 16 / 8 * 4 + r / 8 * 2 + c % 2
 *
 * so that a lane whose rows are queries has its elements in order, byte n those of square n.  A 1 is kept.
 * The tensor has
 *
 *     a row for each head and each chunk of the longest sequence: head * chunks + key / 64
 *     32 columns for each tile: first / 16 + sequence + query / 16, `first` being the sequence's first row
 *
 * Tiles of different sequences do not overlap, and three more follow the last, so that 64 queries can be read
 * from any query on.  Bits of a query or key that does not exist or is masked are undefined. */
#ifndef KILN_OPS_ATTENTION_BITS_H
#define KILN_OPS_ATTENTION_BITS_H

#include "ops/ops.h"

enum { ATTENTION_BITS_TILE = 16, ATTENTION_BITS_CHUNK = 64, ATTENTION_BITS_WORDS = 32 };

/* Whether bits are kept: where the device's kernels write and read them. */
bool attention_bits_are_kept(const struct device *device, struct dropout dropout);

/* Dims of the tensor. */
int64_t attention_bits_rows(int64_t n_heads, int64_t max_seqlen_kv);
int64_t attention_bits_cols(int64_t n_rows_q, int64_t n_sequences);

/* An element: `first` is the first row of its sequence in the stream, query and key count within the
 * sequence. */
struct attention_element {
    int64_t sequence, first, head, query, key;
};

/* The element's bit in host memory. */
bool attention_bits_get(const struct attention *a, struct attention_element e);
void attention_bits_set(const struct attention *a, struct attention_element e, bool kept);

#endif
