/* The equations, h the last layer's output, E the word embeddings:
 *
 *     z = LN(gelu(h_masked W_t^T + b_t)),  MLM logits = z E^T + b_vocab (nn/word_head.h)
 *     p = f(dropout(h_cls) W_pool^T + b_pool),  NSP logits = p W_nsp^T + b_nsp
 *
 * f is tanh, or max(z, 0) of DistilBERT.  Only a classifier of RoBERTa's drops from h_cls. */
#include "nn/bert/bert_heads.h"

#include "nn/head_rows.h"
#include "nn/text_batch_layout.h"

#define WEIGHTS struct bert_head_weights

/* Pooler and transform keep the uniform initialisation of the replaced scripts (docs/quirks.md,
 * "LinearActivation"). */
const struct weight_row bert_pooler_rows[] = {
    WEIGHT_MATRIX(w_pool, HIDDEN, HIDDEN, UNIFORM, WHOLE, "dense.weight"),
    WEIGHT_BIAS(b_pool, HIDDEN, UNIFORM, WHOLE, "dense.bias"),
};
_Static_assert(sizeof bert_pooler_rows / sizeof bert_pooler_rows[0] == BERT_POOLER_N_ROWS,
               "the declared number");

const struct weight_row bert_dense_rows[] = {
    WEIGHT_MATRIX(w_pool, HIDDEN, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_BIAS(b_pool, HIDDEN, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof bert_dense_rows / sizeof bert_dense_rows[0] == BERT_POOLER_N_ROWS,
               "the declared number");

const struct weight_row roberta_mlm_rows[] = {
    WEIGHT_MATRIX(w_t, HIDDEN, HIDDEN, NORMAL, WHOLE, "dense.weight"),
    WEIGHT_BIAS(b_t, HIDDEN, ZERO, WHOLE, "dense.bias"),
    WEIGHT_VECTOR(gamma_t, HIDDEN, ONE, WHOLE, "layer_norm.weight"),
    WEIGHT_VECTOR(beta_t, HIDDEN, ZERO, WHOLE, "layer_norm.bias"),
    WEIGHT_VECTOR(b_vocab, VOCAB, ZERO, BY_WORD, "bias"),
};
_Static_assert(sizeof roberta_mlm_rows / sizeof roberta_mlm_rows[0] == BERT_MLM_N_ROWS,
               "the declared number");

const struct weight_row distilbert_mlm_rows[] = {
    WEIGHT_MATRIX(w_t, HIDDEN, HIDDEN, NORMAL, WHOLE, "transform.weight"),
    WEIGHT_BIAS(b_t, HIDDEN, ZERO, WHOLE, "transform.bias"),
    WEIGHT_VECTOR(gamma_t, HIDDEN, ONE, WHOLE, "layer_norm.weight"),
    WEIGHT_VECTOR(beta_t, HIDDEN, ZERO, WHOLE, "layer_norm.bias"),
    WEIGHT_VECTOR(b_vocab, VOCAB, ZERO, BY_WORD, "projector.bias"),
};
_Static_assert(sizeof distilbert_mlm_rows / sizeof distilbert_mlm_rows[0] == BERT_MLM_N_ROWS,
               "the declared number");

const struct weight_row bert_mlm_rows[] = {
    WEIGHT_MATRIX(w_t, HIDDEN, HIDDEN, UNIFORM, WHOLE, "transform.dense.weight"),
    WEIGHT_BIAS(b_t, HIDDEN, UNIFORM, WHOLE, "transform.dense.bias"),
    WEIGHT_VECTOR(gamma_t, HIDDEN, ONE, WHOLE, "transform.LayerNorm.weight"),
    WEIGHT_VECTOR(beta_t, HIDDEN, ZERO, WHOLE, "transform.LayerNorm.bias"),
    WEIGHT_VECTOR(b_vocab, VOCAB, ZERO, BY_WORD, "bias"),
};
_Static_assert(sizeof bert_mlm_rows / sizeof bert_mlm_rows[0] == BERT_MLM_N_ROWS, "the declared number");

const struct weight_row bert_nsp_rows[] = {
    WEIGHT_MATRIX(w_nsp, TWO, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_VECTOR(b_nsp, TWO, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof bert_nsp_rows / sizeof bert_nsp_rows[0] == BERT_NSP_N_ROWS, "the declared number");

void bert_heads_carve_mlm(struct bert_head_acts *a, struct arena *arena, const struct bert_config *c,
                          struct model_memory memory, int64_t n_masked, int n_slices)
{
    int64_t m = n_masked, h = c->hidden_size;
    int64_t v = weights_vocab_rows(bert_config_padded_vocab(c), n_slices);
    enum dtype dtype = memory.dtype, vector = dtype_of_vectors(dtype);
    a->masked = arena_carve_2d(arena, dtype, m, h);
    a->t_pre = arena_carve_2d(arena, dtype, m, h);
    a->t_act = arena_carve_2d(arena, dtype, m, h);
    a->t_out = arena_carve_2d(arena, dtype, m, h);
    a->t_mean = arena_carve_1d(arena, vector, m);
    a->t_rstd = arena_carve_1d(arena, vector, m);
    a->dtransform = arena_carve_2d(arena, dtype, m, h);
    word_head_carve(&a->words, arena,
                    (struct word_head_room){.dtype = dtype,
                                            .n_rows = m,
                                            .vocab_rows = v,
                                            .n_slices = n_slices,
                                            .whole_logits = memory.whole_logits});
}

void bert_heads_carve_nsp(struct bert_head_acts *a, struct arena *arena, const struct bert_config *c,
                          enum dtype dtype, int64_t n_sequences)
{
    int64_t b = n_sequences, h = c->hidden_size;
    enum dtype vector = dtype_of_vectors(dtype);
    a->cls = arena_carve_2d(arena, dtype, b, h);
    a->pooled = arena_carve_2d(arena, dtype, b, h);
    a->dpooled = arena_carve_2d(arena, dtype, b, h);
    a->nsp_logits = arena_carve_2d(arena, vector, b, 2);
    a->dnsp_logits = arena_carve_2d(arena, dtype, b, 2);
    a->rectifies = bert_config_kind(c)->rectifies;
    a->nsp_loss = arena_carve_1d(arena, vector, b);
    a->nsp_correct = arena_carve_1d(arena, DTYPE_I32, b);
}

void bert_heads_transform(struct exec *x, const struct bert_head_acts *a, tensor h,
                          const struct bert_head_weights *w, const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "MLM head", -1);

    /* z = LN(gelu(h_masked W_t^T + b_t)) */
    tensor masked = head_rows_read(x, a->masked, h, TEXT_MASKED_ROWS, call);
    op->linear_gelu(x, a->t_act, a->t_pre, masked, w->w_t, w->b_t);
    op->layernorm(x, a->t_out, a->t_mean, a->t_rstd, a->t_act, w->gamma_t, w->beta_t, call->form->norm_eps);
}

void bert_heads_pool(struct exec *x, const struct bert_head_acts *a, tensor h,
                     const struct bert_head_weights *w, struct dropout drop, const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "pooler", -1);

    /* p = f(dropout(h_cls) W_pool^T + b_pool) */
    tensor cls = head_rows_read(x, a->cls, h, TEXT_CLS_ROWS, call);
    if (drop.p > 0) {
        op->dropout(x, a->cls, cls, call->stream->fields[TEXT_CLS_KEYS], drop);
        cls = a->cls;
    }
    op->linear(x, a->pooled, cls, w->w_pool, w->b_pool);
    (a->rectifies ? op->relu : op->tanh)(x, a->pooled, a->pooled);
}

void bert_heads_nsp_forward(struct exec *x, const struct bert_head_acts *a, const struct bert_head_weights *w)
{
    exec_enter(x, "NSP head", -1);

    /* NSP logits = p W_nsp^T + b_nsp */
    x->ops->linear(x, a->nsp_logits, a->pooled, w->w_nsp, w->b_nsp);
}

void bert_heads_nsp_loss(struct exec *x, tensor sums, const struct bert_head_acts *a, tensor scale,
                         const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "NSP loss", -1);
    op->cross_entropy(x, a->nsp_loss, a->nsp_correct, a->dnsp_logits, a->nsp_logits,
                      call->stream->fields[TEXT_PAIR_LABELS], 2, scale);
    op->sum(x, tensor_slice(sums, 0, 1), a->nsp_loss);
    op->sum(x, tensor_slice(sums, 1, 1), a->nsp_correct);
}

void bert_heads_nsp_backward(struct exec *x, const struct bert_head_weights *g,
                             const struct bert_head_acts *a, const struct bert_head_weights *w,
                             const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "NSP head", -1);

    /* NSP logits = p W_nsp^T + b_nsp */
    op->linear_backward_weight(x, g->w_nsp, g->b_nsp, a->dnsp_logits, a->pooled, call->adds);
    op->linear_backward_input(x, a->dpooled, a->dnsp_logits, w->w_nsp, false);
}

void bert_heads_pool_backward(struct exec *x, tensor dh, const struct bert_head_weights *g,
                              const struct bert_head_acts *a, tensor h, const struct bert_head_weights *w,
                              struct dropout drop, const struct layer_call *call)
{
    const struct ops *op = x->ops;
    tensor cls = drop.p > 0 ? a->cls : head_rows_in(a->cls, h, TEXT_CLS_ROWS, call),
           dcls = head_rows_in(a->cls, dh, TEXT_CLS_ROWS, call);
    exec_enter(x, "pooler", -1);

    /* p = f(dropout(h_cls) W_pool^T + b_pool) */
    (a->rectifies ? op->relu_backward : op->tanh_backward)(x, a->dpooled, a->dpooled, a->pooled);
    op->linear_backward_weight(x, g->w_pool, g->b_pool, a->dpooled, cls, call->adds);
    op->linear_backward_input(x, dcls, a->dpooled, w->w_pool, false);
    if (drop.p > 0) {
        op->dropout(x, dcls, dcls, call->stream->fields[TEXT_CLS_KEYS], drop);
    }
    head_rows_add(x, dh, dcls, TEXT_CLS_ROWS, call);
}

void bert_heads_transform_backward(struct exec *x, tensor dh, const struct bert_head_weights *g,
                                   const struct bert_head_acts *a, tensor h,
                                   const struct bert_head_weights *w, const struct layer_call *call)
{
    const struct ops *op = x->ops;
    tensor masked = head_rows_in(a->masked, h, TEXT_MASKED_ROWS, call),
           dmasked = head_rows_in(a->masked, dh, TEXT_MASKED_ROWS, call);
    exec_enter(x, "MLM head", -1);

    /* z = LN(gelu(h_masked W_t^T + b_t)) */
    op->layernorm_backward(x, a->dtransform, g->gamma_t, g->beta_t, a->dtransform, a->t_act, a->t_mean,
                           a->t_rstd, w->gamma_t);
    op->gelu_backward(x, a->dtransform, g->b_t, a->dtransform, a->t_pre);
    op->linear_backward_weight(x, g->w_t, NULL_TENSOR, a->dtransform, masked, call->adds);
    op->linear_backward_input(x, dmasked, a->dtransform, w->w_t, false);
    head_rows_add(x, dh, dmasked, TEXT_MASKED_ROWS, call);
}
