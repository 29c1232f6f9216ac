/* row_picks: the rows of the last layer's output that the heads read, where they read few of them: masked
 * positions, [CLS].
 *
 * Behind its attention a layer computes each row from that row alone, and rows of the last layer that no head
 * reads have no part in the loss.  So in training it computes the picked rows only, R of T: gathered from
 * what its attention left, lists laid one after the other, a row as often as a list names it. */
#ifndef KILN_NN_ROW_PICKS_H
#define KILN_NN_ROW_PICKS_H

#include "core/arena.h"
#include "nn/stream.h"
#include "ops/ops.h"

enum { ROW_PICKS_MOST_LISTS = 2 };

struct row_picks {
    int n_lists; /* 0: the heads read all rows */
    struct {
        int field;          /* of the batch, with its rows */
        int64_t first, end; /* of the R */
    } lists[ROW_PICKS_MOST_LISTS];
    int64_t n_rows;  /* R */
    tensor row_keys; /* i32 [R, 2] their dropout addresses */
    tensor heads;    /* [R, N D] outputs of the heads of attention */
    tensor residual; /* [R, H] what is added to the attention sublayer; later its gradient */
    tensor dheads;   /* [R, N D] */
};

/* Adds the rows of a field of the batch that has n_rows. */
void row_picks_add(struct row_picks *p, int field, int64_t n_rows);

/* Carves room for the rows that were added; attention's heads have heads_width columns. */
void row_picks_carve(struct row_picks *p, struct arena *arena, enum dtype dtype, int64_t hidden,
                     int64_t heads_width);

/* to [R, W] = the picked rows of from [T, W], of which the stream has the lists. */
void row_picks_gather(struct exec *x, const struct row_picks *p, tensor to, tensor from,
                      const struct stream *stream);

/* to [T, H] = 0 but for the picked rows, which are those of from [R, H]; rows picked twice are sums. */
void row_picks_scatter(struct exec *x, const struct row_picks *p, tensor to, tensor from,
                       const struct stream *stream);

/* The R rows as a view of the first ones of [T, ...], null of null; those of a list, and of a field's. */
tensor row_picks_view(const struct row_picks *p, tensor all);
tensor row_picks_list(const struct row_picks *p, int i, tensor all);
tensor row_picks_of_field(const struct row_picks *p, tensor all, int field);

#endif
