#include "nn/answer_head.h"

#include "nn/text_batch_layout.h"

#define WEIGHTS struct answer_head_weights

const struct weight_row answer_head_rows[] = {
    WEIGHT_MATRIX(w_qa, TWO, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_VECTOR(b_qa, TWO, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof answer_head_rows / sizeof answer_head_rows[0] == ANSWER_HEAD_N_ROWS,
               "a row for every field");

void answer_head_carve(struct answer_head_acts *a, struct arena *arena, struct model_memory memory,
                       int64_t hidden, bool drops, const struct batch *sizes)
{
    enum dtype dtype = memory.dtype, vector = dtype_of_vectors(dtype);
    int64_t t = sizes->n_tokens, b = sizes->n_sequences;
    a->dropped = memory.kept && drops ? arena_carve_2d(arena, dtype, t, hidden) : NULL_TENSOR;
    a->logits = arena_carve_2d(arena, vector, t, 2);
    a->dlogits = arena_carve_2d(arena, dtype, t, 2);
    a->loss = arena_carve_2d(arena, vector, b, 2);
    a->correct = arena_carve_2d(arena, DTYPE_I32, b, 2);
}

void answer_head_forward(struct exec *x, const struct answer_head_acts *a, const struct head_rows *in,
                         const struct answer_head_weights *w)
{
    exec_enter(x, "QA head", -1);

    /* [start end] logits = dropout(h) W_qa^T + b_qa */
    if (in->drop.p > 0) {
        x->ops->dropout(x, a->dropped, in->rows, in->keys, in->drop);
    }
    x->ops->linear(x, a->logits, in->drop.p > 0 ? a->dropped : in->rows, w->w_qa, w->b_qa);
}

/* A view of a dense matrix as the vector of its elements. */
static tensor flat(tensor t)
{
    return tensor_1d(t.data, t.dtype, tensor_count(t));
}

void answer_head_loss(struct exec *x, tensor sums, const struct answer_head_acts *a, tensor scale,
                      const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "QA loss", -1);
    op->span_cross_entropy(x, a->loss, a->correct, a->dlogits, a->logits, call->stream->cu_seqlens,
                           call->stream->fields[TEXT_SPAN_LABELS], scale);
    op->sum(x, tensor_slice(sums, 0, 1), flat(a->loss));
    op->sum(x, tensor_slice(sums, 1, 1), flat(a->correct));
}

void answer_head_backward(struct exec *x, tensor dh, const struct answer_head_weights *g,
                          const struct answer_head_acts *a, const struct head_rows *in,
                          const struct answer_head_weights *w, bool adds)
{
    exec_enter(x, "QA head", -1);

    /* [start end] logits = dropout(h) W_qa^T + b_qa */
    x->ops->linear_backward_weight(x, g->w_qa, g->b_qa, a->dlogits, in->drop.p > 0 ? a->dropped : in->rows,
                                   adds);
    x->ops->linear_backward_input(x, dh, a->dlogits, w->w_qa, false);
    if (in->drop.p > 0) {
        x->ops->dropout(x, dh, dh, in->keys, in->drop);
    }
}
