/* The equations, h the last layer's output, E the word embeddings:
 *
 *     z = LN(gelu(h_masked W_t^T + b_t)),  MLM logits = z E^T + b_vocab (nn/word_head.h)
 *     p = f(dropout(h_cls) W_pool^T + b_pool),  NSP logits = p W_nsp^T + b_nsp
 *     [start end] logits = dropout(h) W_qa^T + b_qa; a softmax over the tokens of each sequence for either
 *     logits of labels = dropout(r) W^T + b, r a row
 *
 * f is tanh, or max(z, 0) of DistilBERT.  Only a classifier of RoBERTa's drops from h_cls, and only
 * DistilBERT's answers from h. */
#include "nn/bert/bert_heads.h"

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
    a->rectifier = (struct rectifier_acts){0};
    if (bert_config_kind(c)->rectifies) {
        rectifier_carve(&a->rectifier, arena, dtype, b, h);
    }
    a->nsp_loss = arena_carve_1d(arena, vector, b);
    a->nsp_correct = arena_carve_1d(arena, DTYPE_I32, b);
}

/* The rows of h, or of its gradient, that a field of the batch lists: selected rows lie together in h
 * already, others are copied to `own` and, in the backward, added from there. */
static tensor rows_in(tensor own, tensor h, int field, const struct layer_call *call)
{
    return call->picks != NULL ? row_picks_of_field(call->picks, h, field) : own;
}

static tensor read_rows(struct exec *x, tensor own, tensor h, int field, const struct layer_call *call)
{
    if (call->picks == NULL) {
        x->ops->gather_rows(x, own, h, call->stream->fields[field]);
    }
    return rows_in(own, h, field, call);
}

static void add_rows(struct exec *x, tensor dh, tensor own, int field, const struct layer_call *call)
{
    if (call->picks == NULL) {
        x->ops->scatter_add_rows(x, dh, own, call->stream->fields[field]);
    }
}

void bert_heads_transform(struct exec *x, const struct bert_head_acts *a, tensor h,
                          const struct bert_head_weights *w, const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "MLM head", -1);

    /* z = LN(gelu(h_masked W_t^T + b_t)) */
    tensor masked = read_rows(x, a->masked, h, TEXT_MASKED_ROWS, call);
    op->linear_gelu(x, a->t_act, a->t_pre, masked, w->w_t, w->b_t);
    op->layernorm(x, a->t_out, a->t_mean, a->t_rstd, a->t_act, w->gamma_t, w->beta_t, call->form->norm_eps);
}

static bool has_rectifier(const struct bert_head_acts *a)
{
    return !tensor_is_null(a->rectifier.z);
}

void bert_heads_pool(struct exec *x, const struct bert_head_acts *a, tensor h,
                     const struct bert_head_weights *w, struct dropout drop, const struct layer_call *call)
{
    const struct ops *op = x->ops;
    exec_enter(x, "pooler", -1);

    /* p = f(dropout(h_cls) W_pool^T + b_pool) */
    tensor cls = read_rows(x, a->cls, h, TEXT_CLS_ROWS, call);
    if (drop.p > 0) {
        op->dropout(x, a->cls, cls, call->stream->fields[TEXT_CLS_KEYS], drop);
        cls = a->cls;
    }
    if (has_rectifier(a)) {
        op->linear(x, a->rectifier.z, cls, w->w_pool, w->b_pool);
        rectifier_forward(x, a->pooled, &a->rectifier);
    } else {
        op->linear(x, a->pooled, cls, w->w_pool, w->b_pool);
        op->tanh(x, a->pooled, a->pooled);
    }
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
    tensor cls = drop.p > 0 ? a->cls : rows_in(a->cls, h, TEXT_CLS_ROWS, call),
           dcls = rows_in(a->cls, dh, TEXT_CLS_ROWS, call);
    exec_enter(x, "pooler", -1);

    /* p = f(dropout(h_cls) W_pool^T + b_pool) */
    if (has_rectifier(a)) {
        rectifier_backward(x, a->dpooled, a->dpooled, &a->rectifier);
    } else {
        op->tanh_backward(x, a->dpooled, a->dpooled, a->pooled);
    }
    op->linear_backward_weight(x, g->w_pool, g->b_pool, a->dpooled, cls, call->adds);
    op->linear_backward_input(x, dcls, a->dpooled, w->w_pool, false);
    if (drop.p > 0) {
        op->dropout(x, dcls, dcls, call->stream->fields[TEXT_CLS_KEYS], drop);
    }
    add_rows(x, dh, dcls, TEXT_CLS_ROWS, call);
}

void bert_heads_transform_backward(struct exec *x, tensor dh, const struct bert_head_weights *g,
                                   const struct bert_head_acts *a, tensor h,
                                   const struct bert_head_weights *w, const struct layer_call *call)
{
    const struct ops *op = x->ops;
    tensor masked = rows_in(a->masked, h, TEXT_MASKED_ROWS, call),
           dmasked = rows_in(a->masked, dh, TEXT_MASKED_ROWS, call);
    exec_enter(x, "MLM head", -1);

    /* z = LN(gelu(h_masked W_t^T + b_t)) */
    op->layernorm_backward(x, a->dtransform, g->gamma_t, g->beta_t, a->dtransform, a->t_act, a->t_mean,
                           a->t_rstd, w->gamma_t);
    op->gelu_backward(x, a->dtransform, g->b_t, a->dtransform, a->t_pre);
    op->linear_backward_weight(x, g->w_t, NULL_TENSOR, a->dtransform, masked, call->adds);
    op->linear_backward_input(x, dmasked, a->dtransform, w->w_t, false);
    add_rows(x, dh, dmasked, TEXT_MASKED_ROWS, call);
}

/* ---- answers ---- */

#undef WEIGHTS
#define WEIGHTS struct bert_qa_weights

const struct weight_row bert_qa_rows[] = {
    WEIGHT_MATRIX(w_qa, TWO, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_VECTOR(b_qa, TWO, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof bert_qa_rows / sizeof bert_qa_rows[0] == BERT_QA_N_ROWS, "a row for every field");

void bert_qa_carve_acts(struct bert_qa_acts *a, struct arena *arena, const struct bert_config *c,
                        struct model_memory memory, int64_t n_tokens, int64_t n_sequences)
{
    enum dtype dtype = memory.dtype, vector = dtype_of_vectors(dtype);
    a->dropped = memory.kept && c->answer_dropout > 0 ? arena_carve_2d(arena, dtype, n_tokens, c->hidden_size)
                                                      : NULL_TENSOR;
    a->logits = arena_carve_2d(arena, vector, n_tokens, 2);
    a->dlogits = arena_carve_2d(arena, dtype, n_tokens, 2);
    a->loss = arena_carve_2d(arena, vector, n_sequences, 2);
    a->correct = arena_carve_2d(arena, DTYPE_I32, n_sequences, 2);
}

void bert_qa_forward(struct exec *x, const struct bert_qa_acts *a, const struct bert_head_rows *in,
                     const struct bert_qa_weights *w)
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
                      const struct bert_qa_acts *a, const struct bert_head_rows *in,
                      const struct bert_qa_weights *w, bool adds)
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

/* ---- labels ---- */

#undef WEIGHTS
#define WEIGHTS struct bert_classifier_weights

const struct weight_row bert_classifier_rows[] = {
    WEIGHT_MATRIX(w_cls, LABELS, HIDDEN, NORMAL, WHOLE, "weight"),
    WEIGHT_VECTOR(b_cls, LABELS, ZERO, WHOLE, "bias"),
};
_Static_assert(sizeof bert_classifier_rows / sizeof bert_classifier_rows[0] == BERT_CLASSIFIER_N_ROWS,
               "a row for every field");

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

void bert_classifier_forward(struct exec *x, const struct bert_classifier_acts *a,
                             const struct bert_head_rows *in, const struct bert_classifier_weights *w)
{
    exec_enter(x, "classifier", -1);
    x->ops->dropout(x, a->dropped, in->rows, in->keys, in->drop);
    x->ops->linear(x, a->logits, a->dropped, w->w_cls, w->b_cls);
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
                              const struct bert_classifier_acts *a, const struct bert_head_rows *in,
                              const struct bert_classifier_weights *w, bool adds)
{
    const struct ops *op = x->ops;
    exec_enter(x, "classifier", -1);
    op->linear_backward_weight(x, g->w_cls, g->b_cls, a->dlogits, a->dropped, adds);
    op->linear_backward_input(x, drows, a->dlogits, w->w_cls, false);
    op->dropout(x, drows, drows, in->keys, in->drop);
}
