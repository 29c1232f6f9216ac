#include "train/stage.h"

#include <stdlib.h>

struct status stage_init(struct stage *s)
{
    size_t n = (size_t)s->config->num_hidden_layers;
    s->slot.layers = calloc(n, sizeof *s->slot.layers);
    if (s->slot.layers == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the activations of %zu layers", n);
    }
    return status_ok();
}

void stage_fini(struct stage *s)
{
    free(s->slot.layers);
    s->slot.layers = NULL;
}

static void carve_stream(struct bert_stream *stream, struct arena *arena, const struct bert_batch *b)
{
    stream->ids = arena_carve_1d(arena, DTYPE_I32, b->n_tokens);
    stream->types = arena_carve_1d(arena, DTYPE_I32, b->n_tokens);
    stream->positions = arena_carve_1d(arena, DTYPE_I32, b->n_tokens);
    stream->row_keys = arena_carve_2d(arena, DTYPE_I32, b->n_tokens, 2);
    stream->cu_seqlens = arena_carve_1d(arena, DTYPE_I32, b->n_streams + 1);
    stream->masked_rows = arena_carve_1d(arena, DTYPE_I32, b->n_masked);
    stream->masked_labels = arena_carve_1d(arena, DTYPE_I32, b->n_masked);
    stream->cls_rows = arena_carve_1d(arena, DTYPE_I32, b->n_sequences);
    stream->nsp_labels = arena_carve_1d(arena, DTYPE_I32, b->n_sequences);
    stream->span_labels = arena_carve_2d(arena, DTYPE_I32, b->n_sequences, 2);
    stream->max_seqlen = b->max_seqlen;
}

static bool has_mlm(const struct stage *s)
{
    return s->task == BERT_TASK_PRETRAINING || s->task == BERT_TASK_MASKED_LM;
}

static bool has_pooler(const struct stage *s)
{
    return s->task == BERT_TASK_PRETRAINING || s->task == BERT_TASK_ENCODER;
}

static bool has_nsp(const struct stage *s)
{
    return s->task == BERT_TASK_PRETRAINING;
}

static bool has_qa(const struct stage *s)
{
    return s->task == BERT_TASK_QUESTION_ANSWERING;
}

static void carve_heads(struct stage *s, const struct bert_batch *b)
{
    if (has_mlm(s)) {
        bert_heads_carve_mlm(&s->slot.heads, &s->arena, s->config, s->dtype, b->n_masked);
    }
    if (has_pooler(s)) {
        bert_heads_carve_nsp(&s->slot.heads, &s->arena, s->config, s->dtype, b->n_sequences);
    }
    if (has_qa(s)) {
        bert_qa_carve_acts(&s->slot.qa, &s->arena, s->dtype, b->n_tokens, b->n_sequences);
    }
}

/* How many layers have activations of their own; layer i uses those of layer i minus this many. */
static int64_t layers_kept(const struct stage *s)
{
    if (s->grads == NULL) {
        return 2; /* without a backward, two layers' activations serve all in turn */
    }
    return s->recompute > 0 ? s->recompute : s->config->num_hidden_layers;
}

static bool ends_chunk(const struct stage *s, int64_t layer)
{
    return s->grads != NULL && s->recompute > 0 && (layer + 1) % s->recompute == 0;
}

static void carve_layers(struct stage *s, int64_t n_tokens)
{
    const struct bert_config *c = s->config;
    int64_t kept = layers_kept(s);
    for (int64_t i = 0; i < c->num_hidden_layers; i++) {
        struct bert_layer_acts *layer = &s->slot.layers[i];
        if (i < kept) {
            bert_layer_carve_acts(layer, &s->arena, c, s->dtype, n_tokens);
            continue;
        }
        *layer = s->slot.layers[i - kept];
        if (ends_chunk(s, i)) { /* the input of the next chunk */
            layer->out = arena_carve_2d(&s->arena, s->dtype, n_tokens, c->hidden_size);
        }
    }
}

void stage_carve(struct stage *s, const struct bert_batch *b)
{
    const struct bert_config *c = s->config;
    s->arena.used = 0;
    carve_stream(&s->slot.stream, &s->arena, b);
    bert_embed_carve_acts(&s->slot.embed, &s->arena, c, s->dtype, b->n_tokens);
    carve_layers(s, b->n_tokens);
    carve_heads(s, b);
    bert_layer_carve_scratch(&s->slot.scratch, &s->arena, c, s->dtype, b->n_tokens);
    s->slot.dx = arena_carve_2d(&s->arena, s->dtype, b->n_tokens, c->hidden_size);
}

struct bert_batch stage_largest_batch(struct bert_batch_limits limits)
{
    return (struct bert_batch){
        .n_tokens = limits.n_tokens,
        .n_real_tokens = limits.n_tokens,
        .n_sequences = limits.n_sequences,
        .n_streams = limits.n_sequences,
        .n_masked = limits.n_masked,
        .max_seqlen = limits.max_seqlen,
    };
}

size_t stage_bytes(struct stage *s, struct bert_batch_limits limits)
{
    struct arena arena = s->arena;
    struct bert_batch largest = stage_largest_batch(limits);
    s->arena = arena_measuring();
    stage_carve(s, &largest);
    size_t bytes = s->arena.used;
    s->arena = arena;
    return bytes;
}

static void upload(struct stage *s, tensor t, const int32_t *from)
{
    if (t.data != NULL) {
        exec_copy_in(s->x, t.data, from, tensor_bytes(t));
    }
}

static struct bert_layer_call call_of(const struct stage *s, int64_t layer, bool training)
{
    return (struct bert_layer_call){
        .config = s->config, .stream = &s->slot.stream, .layer = layer, .training = training};
}

/* The input of a layer: the output of what is below it. */
static tensor input_of(const struct stage *s, int64_t layer)
{
    return layer == 0 ? s->slot.embed.out : s->slot.layers[layer - 1].out;
}

/* Layers [first, end). */
static void layers_forward(struct stage *s, int64_t first, int64_t end, bool training)
{
    for (int64_t i = first; i < end; i++) {
        struct bert_layer_call call = call_of(s, i, training);
        bert_layer_forward(s->x, &s->slot.layers[i], &s->slot.scratch, input_of(s, i), &s->weights->layers[i],
                           &call);
    }
}

static void heads_forward(struct stage *s, tensor h, const struct bert_layer_call *call)
{
    const struct bert_weights *w = s->weights;
    if (has_mlm(s)) {
        bert_heads_mlm_forward(s->x, &s->slot.heads, h, w->embed.word, &w->heads, call);
    }
    if (has_pooler(s)) {
        bert_heads_pool(s->x, &s->slot.heads, h, &w->heads, call);
    }
    if (has_nsp(s)) {
        bert_heads_nsp_forward(s->x, &s->slot.heads, &w->heads);
    }
    if (has_qa(s)) {
        bert_qa_forward(s->x, &s->slot.qa, h, &w->qa);
    }
}

void stage_forward(struct stage *s, const struct bert_batch *b, bool training)
{
    const struct bert_stream *stream = &s->slot.stream;
    stage_carve(s, b);
    upload(s, stream->ids, b->ids);
    upload(s, stream->types, b->types);
    upload(s, stream->positions, b->positions);
    upload(s, stream->row_keys, b->row_keys);
    upload(s, stream->cu_seqlens, b->cu_seqlens);
    upload(s, stream->masked_rows, b->masked_rows);
    upload(s, stream->masked_labels, b->masked_labels);
    upload(s, stream->cls_rows, b->cls_rows);
    upload(s, stream->nsp_labels, b->nsp_labels);
    upload(s, stream->span_labels, b->span_labels);

    int64_t n_layers = s->config->num_hidden_layers;
    struct bert_layer_call call = call_of(s, n_layers - 1, training);
    bert_embed_forward(s->x, &s->slot.embed, &s->weights->embed, &call);
    layers_forward(s, 0, n_layers, training);
    heads_forward(s, input_of(s, n_layers), &call);
}

void stage_loss(struct stage *s, tensor metrics, struct bert_loss_scale scale)
{
    struct bert_layer_call call = call_of(s, 0, false);
    if (has_mlm(s)) {
        bert_heads_mlm_loss(s->x, metrics, &s->slot.heads, scale.mlm, &call);
    }
    if (has_nsp(s)) {
        bert_heads_nsp_loss(s->x, metrics, &s->slot.heads, scale.nsp, &call);
    }
    if (has_qa(s)) {
        bert_qa_loss(s->x, metrics, &s->slot.qa, scale.span, &call);
    }
}

/* The gradient of the last layer's output h. */
static void heads_backward(struct stage *s, tensor dh, tensor h, const struct bert_layer_call *call)
{
    const struct bert_weights *w = s->weights, *g = s->grads;
    if (has_qa(s)) {
        bert_qa_backward(s->x, dh, &g->qa, &s->slot.qa, h, &w->qa);
        return;
    }
    s->x->ops->fill(s->x, dh, 0);
    if (has_nsp(s)) {
        bert_heads_nsp_backward(s->x, dh, &g->heads, &s->slot.heads, &w->heads, call);
    }
    if (has_mlm(s)) {
        bert_heads_mlm_backward(s->x, dh, g->embed.word, &g->heads, &s->slot.heads, w->embed.word, &w->heads,
                                call);
    }
}

void stage_backward(struct stage *s, bool training)
{
    struct bert_layer_call call = call_of(s, 0, training);
    int64_t n_layers = s->config->num_hidden_layers;
    tensor dx = s->slot.dx;
    heads_backward(s, dx, input_of(s, n_layers), &call);
    for (int64_t i = n_layers - 1; i >= 0; i--) {
        if (ends_chunk(s, i) && i < n_layers - 1) {
            layers_forward(s, i + 1 - s->recompute, i + 1, training);
        }
        call = call_of(s, i, training);
        bert_layer_backward(s->x, dx, &s->grads->layers[i], &s->slot.scratch, &s->slot.layers[i],
                            input_of(s, i), &s->weights->layers[i], &call);
    }
    bert_embed_backward(s->x, dx, &s->grads->embed, &s->slot.embed, &s->weights->embed, &call);
}
