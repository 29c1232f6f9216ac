/* [start end] logits = h W_qa^T + b_qa; a softmax over the tokens of each sequence for either. */
#include "nn/bert/bert_qa.h"

#include "nn/text_batch_layout.h"

#define WEIGHTS struct bert_qa_weights

const struct weight_row bert_qa_rows[] = {
    WEIGHT_MATRIX(w_qa, TWO, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_VECTOR(b_qa, TWO, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof bert_qa_rows / sizeof bert_qa_rows[0] == BERT_QA_N_ROWS, "a row for every field");

void bert_qa_carve_acts(struct bert_qa_acts *a, struct arena *arena, enum dtype dtype, int64_t n_tokens,
                        int64_t n_sequences)
{
    enum dtype vector = dtype_of_vectors(dtype);
    a->logits = arena_carve_2d(arena, vector, n_tokens, 2);
    a->dlogits = arena_carve_2d(arena, dtype, n_tokens, 2);
    a->loss = arena_carve_2d(arena, vector, n_sequences, 2);
    a->correct = arena_carve_2d(arena, DTYPE_I32, n_sequences, 2);
}

void bert_qa_forward(struct exec *x, const struct bert_qa_acts *a, tensor h, const struct bert_qa_weights *w)
{
    exec_enter(x, "QA head", -1);
    x->ops->linear(x, a->logits, h, w->w_qa, w->b_qa);
}

/* A view of a dense matrix as the vector of its elements. */
static tensor flat(tensor t)
{
    return tensor_1d(t.data, t.dtype, tensor_count(t));
}

void bert_qa_loss(struct exec *x, tensor sums, const struct bert_qa_acts *a, tensor scale,
                  const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "QA loss", -1);
    op->span_cross_entropy(x, a->loss, a->correct, a->dlogits, a->logits, call->stream->cu_seqlens,
                           call->stream->fields[TEXT_SPAN_LABELS], scale);
    op->sum(x, tensor_slice(sums, 0, 1), flat(a->loss));
    op->sum(x, tensor_slice(sums, 1, 1), flat(a->correct));
}

void bert_qa_backward(struct exec *x, tensor dh, const struct bert_qa_weights *g,
                      const struct bert_qa_acts *a, tensor h, const struct bert_qa_weights *w, bool adds)
{
    exec_enter(x, "QA head", -1);
    x->ops->linear_backward_weight(x, g->w_qa, g->b_qa, a->dlogits, h, adds);
    x->ops->linear_backward_input(x, dh, a->dlogits, w->w_qa, false);
}
