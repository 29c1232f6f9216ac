/* row_picks: the rows of the last layer's output that the heads read, where they read few of them: masked
 * positions, [CLS].
 *
 * After its attention a layer computes each row from that row alone, and rows of the last layer that no head
 * reads have no part in the loss.  So in training it computes the selected rows only, R of T: they are
 * gathered from the results of its attention, list after list, a row once for each time that a list names
 * it. */
#ifndef KILN_NN_ROW_PICKS_H
#define KILN_NN_ROW_PICKS_H

#include "core/arena.h"
#include "nn/stream.h"
#include "ops/ops.h"

enum { ROW_PICKS_MOST_LISTS = 2 };

struct row_picks {
    int n_lists; /* 0: the heads read all rows */
    struct {
        int field;          /* field of the batch that lists the rows */
        int64_t first, end; /* range of the list in the R rows */
    } lists[ROW_PICKS_MOST_LISTS];
    int64_t n_rows;  /* R */
    tensor row_keys; /* i32 [R, 2] dropout addresses of the rows */
    tensor heads;    /* [R, N D] outputs of the heads of attention */
    /* [R, H] the residual that is added to the attention sublayer's output; later its gradient */
    tensor residual;
    tensor dheads; /* [R, N D] */
};

/* Adds the rows of a field of the batch that has n_rows. */
void row_picks_add(struct row_picks *p, int field, int64_t n_rows);

/* Carves memory for the rows that were added; attention's heads have heads_width columns. */
void row_picks_carve(struct row_picks *p, struct arena *arena, enum dtype dtype, int64_t hidden,
                     int64_t heads_width);

/* to [R, W] = the selected rows of from [T, W], whose lists are in the stream. */
void row_picks_gather(struct exec *x, const struct row_picks *p, tensor to, tensor from,
                      const struct stream *stream);

/* to [T, H] = 0 but for the selected rows, which are those of from [R, H]; rows selected twice are sums. */
void row_picks_scatter(struct exec *x, const struct row_picks *p, tensor to, tensor from,
                       const struct stream *stream);

/* Views of the R rows, which are the first ones of `all` [T, ...], null of null; of the rows of list i; and
 * of the rows of a field's list. */
tensor row_picks_view(const struct row_picks *p, tensor all);
tensor row_picks_list(const struct row_picks *p, int i, tensor all);
tensor row_picks_of_field(const struct row_picks *p, tensor all, int field);

#endif
