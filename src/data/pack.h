/* pack: puts sequences into fixed-length rows so that few tokens stay empty.
 *
 * Longest first, each sequence goes to the row in which it leaves the least room, among rows with fewer than
 * three sequences and room for its predictions.  If there is none it begins a new row.  No sequence is left
 * out.  One pass over the histogram of lengths, O(n S).
 *
 * Source: best fit decreasing on histograms; Krell et al. 2021 (arXiv:2107.02027) show that a limit of three
 * keeps nearly all of the gain and pack alike ("shortest-pack-first"). */
#ifndef KILN_DATA_PACK_H
#define KILN_DATA_PACK_H

#include "core/status.h"

#include <stdint.h>

enum { PACK_MOST = 3 };

/* The sequences to pack, and the limits of a row. */
struct pack_problem {
    int64_t n;              /* sequences */
    const int32_t *lengths; /* [n] in 1..row_length */
    const int32_t *masked;  /* [n] predictions, at most row_masked */
    int64_t row_length, row_masked;
    int most; /* sequences of a row, at most PACK_MOST; 0: that many */
};

struct pack_row {
    int64_t sequences[PACK_MOST]; /* [n] */
    int n;
    int32_t length, masked; /* sums */
};

/* Makes rows[*n_rows]; free() them. */
struct status pack_sequences(struct pack_row **rows, int64_t *n_rows, const struct pack_problem *p);

#endif
