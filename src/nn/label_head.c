#include "nn/label_head.h"

#include "nn/text_batch_layout.h"

#define WEIGHTS struct label_head_weights

const struct weight_row label_head_rows[] = {
    WEIGHT_MATRIX(w_cls, LABELS, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_VECTOR(b_cls, LABELS, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof label_head_rows / sizeof label_head_rows[0] == LABEL_HEAD_N_ROWS,
               "a row for every field");

struct batch_field label_head_field(const struct model_labels *labels, enum batch_rows rows)
{
    struct batch_field f = text_batch_layout.fields[TEXT_CLASS_LABELS];
    bool single = labels->problem == PROBLEM_SINGLE_LABEL;
    f.rows = rows;
    f.width = single ? 1 : (int)labels->n;
    f.dtype = single ? DTYPE_I32 : DTYPE_F32;
    f.nothing = single ? -1 : BATCH_NO_NUMBER;
    return f;
}

void label_head_carve(struct label_head_acts *a, struct arena *arena, const struct model *m, enum dtype dtype,
                      int64_t n_rows)
{
    enum dtype vector = dtype_of_vectors(dtype);
    int64_t n = m->labels.n;
    bool single = m->labels.problem == PROBLEM_SINGLE_LABEL;
    a->dropped = arena_carve_2d(arena, dtype, n_rows, m->hidden_size);
    a->logits = arena_carve_2d(arena, vector, n_rows, n);
    a->dlogits = arena_carve_2d(arena, dtype, n_rows, n);
    a->loss = single ? arena_carve_1d(arena, vector, n_rows) : arena_carve_2d(arena, vector, n_rows, n);
    a->correct =
        single ? arena_carve_1d(arena, DTYPE_I32, n_rows) : arena_carve_2d(arena, DTYPE_I32, n_rows, n);
}

void label_head_forward(struct exec *x, const struct label_head_acts *a, const struct head_rows *in,
                        const struct label_head_weights *w)
{
    exec_enter(x, "classifier", -1);
    x->ops->dropout(x, a->dropped, in->rows, in->keys, in->drop);
    x->ops->linear(x, a->logits, a->dropped, w->w_cls, w->b_cls);
}

/* A view of a dense matrix as the vector of its elements. */
static tensor flat(tensor t)
{
    return tensor_1d(t.data, t.dtype, tensor_count(t));
}

void label_head_loss(struct exec *x, tensor sums, const struct label_head_acts *a, tensor labels,
                     tensor scale, const struct model_labels *of)
{
    const struct ops *op = x->ops;
    exec_enter(x, "classifier loss", -1);
    if (of->problem == PROBLEM_SINGLE_LABEL) {
        op->cross_entropy(x, a->loss, a->correct, a->dlogits, a->logits, labels, of->n, scale);
    } else {
        /* the batch's field is a vector if it has one number a row */
        tensor targets = tensor_2d(labels.data, labels.dtype, tensor_count(labels) / of->n, of->n);
        op->pointwise(x, a->loss, a->correct, a->dlogits, a->logits, targets,
                      of->problem == PROBLEM_REGRESSION ? POINTWISE_SQUARED : POINTWISE_SIGMOID, scale);
    }
    op->sum(x, tensor_slice(sums, 0, 1), flat(a->loss));
    op->sum(x, tensor_slice(sums, 1, 1), flat(a->correct));
}

void label_head_backward(struct exec *x, tensor drows, const struct label_head_weights *g,
                         const struct label_head_acts *a, const struct head_rows *in,
                         const struct label_head_weights *w, bool adds)
{
    const struct ops *op = x->ops;
    exec_enter(x, "classifier", -1);
    op->linear_backward_weight(x, g->w_cls, g->b_cls, a->dlogits, a->dropped, adds);
    op->linear_backward_input(x, drows, a->dlogits, w->w_cls, false);
    op->dropout(x, drows, drows, in->keys, in->drop);
}
