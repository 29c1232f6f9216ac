/* The equations, r a row: logits = dropout(r) W^T + b. */
#include "nn/bert/bert_classifier.h"

#define WEIGHTS struct bert_classifier_weights

const struct weight_row bert_classifier_rows[] = {
    WEIGHT_MATRIX(w_cls, LABELS, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_VECTOR(b_cls, LABELS, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof bert_classifier_rows / sizeof bert_classifier_rows[0] == BERT_CLASSIFIER_N_ROWS,
               "a row for every field");

/* Dropout site above those of all layers, the one after that of the embeddings. */
static const uint32_t SITE_CLASSIFIER = 0xFFFF0001U;

static struct dropout classifier_dropout(const struct layer_call *call, const struct bert_config *c)
{
    return (struct dropout){.p = call->training ? c->classifier_dropout : 0, .site = SITE_CLASSIFIER};
}

void bert_classifier_carve_acts(struct bert_classifier_acts *a, struct arena *arena,
                                const struct bert_config *c, enum dtype dtype, int64_t n_rows)
{
    enum dtype vector = dtype_of_vectors(dtype);
    bool single = c->labels.problem == PROBLEM_SINGLE_LABEL;
    a->dropped = arena_carve_2d(arena, dtype, n_rows, c->hidden_size);
    a->logits = arena_carve_2d(arena, vector, n_rows, c->labels.n);
    a->dlogits = arena_carve_2d(arena, dtype, n_rows, c->labels.n);
    a->loss =
        single ? arena_carve_1d(arena, vector, n_rows) : arena_carve_2d(arena, vector, n_rows, c->labels.n);
    a->correct = single ? arena_carve_1d(arena, DTYPE_I32, n_rows)
                        : arena_carve_2d(arena, DTYPE_I32, n_rows, c->labels.n);
}

void bert_classifier_forward(struct exec *x, const struct bert_classifier_acts *a, tensor rows,
                             tensor row_keys, const struct bert_classifier_weights *w,
                             const struct bert_config *c, const struct layer_call *call)
{
    exec_enter(x, "classifier", -1);
    x->ops->dropout(x, a->dropped, rows, row_keys, classifier_dropout(call, c));
    x->ops->linear(x, a->logits, a->dropped, w->w_cls, w->b_cls);
}

/* A view of a dense matrix as the vector of its elements. */
static tensor flat(tensor t)
{
    return tensor_1d(t.data, t.dtype, tensor_count(t));
}

void bert_classifier_loss(struct exec *x, tensor sums, const struct bert_classifier_acts *a, tensor labels,
                          tensor scale, const struct bert_config *c)
{
    const struct ops *op = x->ops;
    exec_enter(x, "classifier loss", -1);
    if (c->labels.problem == PROBLEM_SINGLE_LABEL) {
        op->cross_entropy(x, a->loss, a->correct, a->dlogits, a->logits, labels, c->labels.n, scale);
    } else {
        /* the batch's field is a vector if it has one number a row */
        tensor targets =
            tensor_2d(labels.data, labels.dtype, tensor_count(labels) / c->labels.n, c->labels.n);
        op->pointwise(x, a->loss, a->correct, a->dlogits, a->logits, targets,
                      c->labels.problem == PROBLEM_REGRESSION ? POINTWISE_SQUARED : POINTWISE_SIGMOID, scale);
    }
    op->sum(x, tensor_slice(sums, 0, 1), flat(a->loss));
    op->sum(x, tensor_slice(sums, 1, 1), flat(a->correct));
}

void bert_classifier_backward(struct exec *x, tensor drows, const struct bert_classifier_weights *g,
                              const struct bert_classifier_acts *a, tensor row_keys,
                              const struct bert_classifier_weights *w, const struct bert_config *c,
                              const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "classifier", -1);
    op->linear_backward_weight(x, g->w_cls, g->b_cls, a->dlogits, a->dropped, call->adds);
    op->linear_backward_input(x, drows, a->dlogits, w->w_cls, false);
    op->dropout(x, drows, drows, row_keys, classifier_dropout(call, c));
}
