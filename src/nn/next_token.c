#include "nn/next_token.h"

#include "nn/text_batch_layout.h"

void next_token_carve(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                      const struct batch *sizes)
{
    struct next_token_acts *a = acts;
    int64_t n = sizes->n_labels, h = m->hidden_size;
    a->read = arena_carve_2d(arena, memory.stream, n, h);
    a->z = arena_carve_2d(arena, memory.dtype, n, h);
    norm_carve_statistics(&a->norm, arena, a->stack.form.norm, memory.dtype, n);
    a->dz = memory.kept ? arena_carve_2d(arena, memory.dtype, n, h) : NULL_TENSOR;
    word_head_carve(
        &a->head, arena,
        (struct word_head_room){
            .dtype = memory.dtype,
            .n_rows = n,
            .vocab_rows = weights_vocab_rows(block_model_of(m)->sizes.padded[DIM_VOCAB], a->stack.n_slices),
            .n_slices = a->stack.n_slices,
            .whole_logits = memory.whole_logits});
}

/* The matrix of the last product, or its gradient. */
static tensor last_matrix(const struct next_token_weights *w)
{
    return tensor_is_null(w->decoder) ? w->word : w->decoder;
}

/* z = LN_f(y) of the rows that are read; logits = z E^T */
static struct word_head head_of(const struct model_pass *p)
{
    const struct next_token_acts *a = p->acts;
    const struct next_token_weights *w = p->weights;
    const struct ops *op = p->x->ops;
    exec_enter(p->x, "next-token head", -1);
    tensor y =
        stream_gather(p->x, p->stream, block_model_output(a, p->model->n_layers - 1), a->stack.scratch.whole);
    op->gather_rows(p->x, a->read, y, p->stream->fields[TEXT_MASKED_ROWS]);
    if (tensor_is_null(w->norm_out.gamma)) {
        op->cast(p->x, a->z, a->read);
    } else {
        op->layernorm(p->x, a->z, a->norm.mean, a->norm.rstd, a->read, w->norm_out.gamma, w->norm_out.beta,
                      a->stack.form.norm_eps);
    }
    return (struct word_head){.rows = a->z,
                              .word = last_matrix(w),
                              .labels = p->stream->fields[TEXT_MASKED_LABELS],
                              .scale = tensor_slice(p->loss_scales, 0, 1),
                              .n_words = p->model->n_words};
}

void next_token_forward(const struct model_pass *p)
{
    struct word_head h = head_of(p);
    word_head_forward(p->x, &((const struct next_token_acts *)p->acts)->head, &h);
}

void next_token_measure(const struct model_pass *p, tensor sums)
{
    struct word_head h = head_of(p);
    word_head_measure(p->x, sums, &((const struct next_token_acts *)p->acts)->head, &h);
}

void next_token_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    const struct next_token_acts *a = p->acts;
    const struct next_token_weights *w = p->weights, *g = p->grads;
    const struct ops *op = p->x->ops;
    struct word_head h = head_of(p);
    struct word_head_gradients gradients = {a->dz, last_matrix(g), NULL_TENSOR};
    word_head_learn(p->x, sums, &gradients, &a->head, &h);
    if (!tensor_is_null(w->norm_out.gamma)) {
        op->layernorm_backward(p->x, a->dz, g->norm_out.gamma, g->norm_out.beta, a->dz, a->read, a->norm.mean,
                               a->norm.rstd, w->norm_out.gamma);
    }
    tensor dy = stream_room(p->x, p->stream, dx, a->stack.scratch.whole);
    op->fill(p->x, dy, 0);
    op->scatter_add_rows(p->x, dy, a->dz, p->stream->fields[TEXT_MASKED_ROWS]);
    stream_keep_own(p->x, p->stream, dx, dy);
}

tensor next_token_output(const void *acts, enum model_output output)
{
    const struct word_head_acts *a = &((const struct next_token_acts *)acts)->head;
    return output == MODEL_WORD_LOGITS    ? a->all_logits
           : output == MODEL_WORD_LOSSES  ? a->loss
           : output == MODEL_WORD_CORRECT ? a->correct
                                          : NULL_TENSOR;
}

void next_token_visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                      void *context)
{
    const struct next_token_acts *a = acts;
    const struct block_model *blocks = block_model_of(m);
    char path[MODEL_MODULE_BYTES];
    if (layer == MODEL_INPUT_LAYER) {
        visitor(context, "embeddings", blocks->input_module, BATCH_OF_TOKENS, a->stack.in);
    } else if (layer < m->n_layers) {
        const struct block_acts *l = &a->stack.layers[layer];
        block_model_path(path, m, layer);
        visitor(context, "query, key, value", NULL, BATCH_OF_TOKENS, l->attention.qkv);
        visitor(context, "attention", NULL, BATCH_OF_TOKENS, l->attention.heads);
        visitor(context, "sum behind attention", NULL, BATCH_OF_TOKENS, l->norm_2.sum);
        visitor(context, "activation", NULL, BATCH_OF_TOKENS, l->ff.act);
        visitor(context, "output", path, BATCH_OF_TOKENS, l->out);
    } else {
        bool whole = !tensor_is_null(a->head.all_logits) && a->head.all_logits.dims[0] == a->z.dims[0];
        visitor(context, "final norm", blocks->norm_module, BATCH_OF_LABELS, a->z);
        visitor(context, "logits", "lm_head", BATCH_OF_LABELS, whole ? a->head.all_logits : NULL_TENSOR);
    }
}
