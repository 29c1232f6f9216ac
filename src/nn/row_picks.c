#include "nn/row_picks.h"

void row_picks_add(struct row_picks *p, int field, int64_t n_rows)
{
    CHECK(p->n_lists < ROW_PICKS_MOST_LISTS, "more than %d lists of rows", ROW_PICKS_MOST_LISTS);
    p->lists[p->n_lists].field = field;
    p->lists[p->n_lists].first = p->n_rows;
    p->n_rows += n_rows;
    p->lists[p->n_lists++].end = p->n_rows;
}

void row_picks_carve(struct row_picks *p, struct arena *arena, enum dtype dtype, int64_t hidden,
                     int64_t heads_width)
{
    p->row_keys = arena_carve_2d(arena, DTYPE_I32, p->n_rows, 2);
    p->heads = arena_carve_2d(arena, dtype, p->n_rows, heads_width);
    p->residual = arena_carve_2d(arena, dtype, p->n_rows, hidden);
    p->dheads = arena_carve_2d(arena, dtype, p->n_rows, heads_width);
}

tensor row_picks_list(const struct row_picks *p, int i, tensor all)
{
    return tensor_slice(all, p->lists[i].first, p->lists[i].end - p->lists[i].first);
}

void row_picks_gather(struct exec *x, const struct row_picks *p, tensor to, tensor from,
                      const struct stream *stream)
{
    for (int i = 0; i < p->n_lists; i++) {
        x->ops->gather_rows(x, row_picks_list(p, i, to), from, stream->fields[p->lists[i].field]);
    }
}

/* A row may be named by both lists, so its gradients are added; a row that no list names has the
 * gradient 0. */
void row_picks_scatter(struct exec *x, const struct row_picks *p, tensor to, tensor from,
                       const struct stream *stream)
{
    x->ops->fill(x, to, 0);
    for (int i = 0; i < p->n_lists; i++) {
        x->ops->scatter_add_rows(x, to, row_picks_list(p, i, from), stream->fields[p->lists[i].field]);
    }
}

tensor row_picks_view(const struct row_picks *p, tensor all)
{
    return tensor_is_null(all) ? all : tensor_slice(all, 0, p->n_rows);
}

tensor row_picks_of_field(const struct row_picks *p, tensor all, int field)
{
    int i = 0;
    while (p->lists[i].field != field) {
        i++;
        CHECK(i < p->n_lists, "rows of field %d are not picked", field);
    }
    return row_picks_list(p, i, all);
}
