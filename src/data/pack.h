/* pack: puts several sequences into each fixed-length row, so that few of its tokens stay empty.
 *
 * Row by row: the longest sequence left, then either two that fill the row exactly, one of them as short as
 * possible, or the longest that fits.  Rows of three are made as often as the mean length of the remaining
 * sequences requires.  A row has at most three sequences and space for their predictions.  No sequence is
 * left out.  O(n S).
 *
 * The limit of three comes from the layout.  Krell et al. 2021 (arXiv:2107.02027) choose mixtures of exact
 * rows by least squares; tests/data/test_pack_nnls.c compares these rows with theirs. */
#ifndef KILN_DATA_PACK_H
#define KILN_DATA_PACK_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { PACK_MOST = 3 };

/* The sequences to pack, and the limits of a row. */
struct pack_problem {
    int64_t n;              /* sequences */
    const int32_t *lengths; /* [n] in 1..row_length */
    const int32_t *masked;  /* [n] predictions, at most row_masked */
    int64_t row_length, row_masked;
    int most; /* sequences of a row, at most PACK_MOST; 0: PACK_MOST */
};

struct pack_row {
    int64_t sequences[PACK_MOST]; /* [n] */
    int n;
    int32_t length, masked; /* sums */
};

/* Makes rows[*n_rows]; free() them. */
struct status pack_sequences(struct pack_row **rows, int64_t *n_rows, const struct pack_problem *p);

/* Counts of the lists of lengths that share a row, for the metadata of packed data. */
enum { PACK_STRATEGIES_TOP = 8 };

struct pack_strategies {
    struct pack_strategy {
        uint64_t lengths; /* 20 bits each, longest first */
        int64_t n;        /* packs that have them */
    } * sorted;           /* [n] by lengths */
    int64_t n;
    size_t capacity;
};

/* Counts the list of a row.  STATUS_MEMORY. */
struct status pack_strategies_count(struct pack_strategies *s, const struct pack_row *row,
                                    const int32_t *lengths);

/* The numbers of the most common ones, ties by number; -1 if there are fewer. */
void pack_strategies_top(const struct pack_strategies *s, int64_t top[PACK_STRATEGIES_TOP]);

/* Safe on a zeroed struct. */
void pack_strategies_fini(struct pack_strategies *s);

#endif
