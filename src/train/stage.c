#include "train/stage.h"

#include "dev/queue.h"
#include "ops/op_watch.h"

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

void stage_carve_weights(struct stage *s, struct arena *arena)
{
    for (int64_t i = 0; i < s->config->num_hidden_layers; i++) {
        bert_layer_carve_weights(&s->slot.layers[i], arena, s->config, s->fp8);
    }
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
            bert_layer_carve_acts(layer, &s->arena, c, s->dtype, s->fp8, n_tokens, s->grads != NULL);
            continue;
        }
        bert_layer_share_acts(layer, &s->slot.layers[i - kept]);
        if (ends_chunk(s, i)) { /* the input of the next chunk */
            layer->out = fp8_source_carve(&s->arena, s->fp8, s->dtype, n_tokens, c->hidden_size);
        }
    }
}

static void carve(struct stage *s, const struct bert_batch *b)
{
    const struct bert_config *c = s->config;
    s->capacity = *b;
    s->arena.used = 0;
    stage_batch_carve(&s->slot.block, &s->arena, b);
    s->x->dropout_key = s->slot.block.dropout_key.data;
    bert_embed_carve_acts(&s->slot.embed, &s->arena, c, s->dtype, s->fp8, b->n_tokens, s->grads != NULL);
    carve_layers(s, b->n_tokens);
    carve_heads(s, b);
    bert_layer_carve_scratch(&s->slot.scratch, &s->arena, c, s->dtype, s->fp8, b->n_tokens);
    s->slot.dx = arena_carve_2d(&s->arena, s->dtype, b->n_tokens, c->hidden_size);
}

void stage_carve_largest(struct stage *s)
{
    struct bert_batch largest = stage_batch_largest(s->x->device, s->limits);
    carve(s, &largest);
}

void stage_reserve(struct stage *s)
{
    stage_carve_largest(s);
    queue_stage(s->x, s->slot.block.memory, s->slot.block.bytes);
}

void stage_begin(struct stage *s, const struct bert_batch *batch, const struct stage_numbers *numbers)
{
    struct bert_batch capacity = stage_batch_capacity(s->x->device, s->limits, batch);
    exec_enter(s->x, "a batch", -1);
    carve(s, &capacity);
    stage_batch_send(&s->slot.block, s->x, batch, numbers);
}

bool stage_graph_begin(struct stage *s, enum stage_work work)
{
    static const struct bert_batch none;
    const struct bert_batch *c = work == STAGE_UPDATE ? &none : &s->capacity;
    if (op_watch_is(s->x->ops)) {
        return !failed(s->x->status);
    }
    const int64_t key[] = {work, c->n_tokens, c->n_sequences, c->n_streams, c->n_masked, c->max_seqlen};
    return queue_graph_begin(s->x, key, sizeof key);
}

static struct bert_layer_call call_of(const struct stage *s, int64_t layer, bool training)
{
    return (struct bert_layer_call){
        .config = s->config, .stream = &s->slot.block.stream, .layer = layer, .training = training};
}

void stage_round_weights(struct stage *s)
{
    for (int64_t i = 0; s->fp8 != FP8_NONE && i < s->config->num_hidden_layers; i++) {
        bert_layer_round_weights(s->x, &s->slot.layers[i], &s->weights->layers[i], i);
    }
}

void stage_round_changed(struct stage *s)
{
    if (s->rounded != *s->version) {
        stage_round_weights(s);
        s->rounded = failed(s->x->status) ? 0 : *s->version;
    }
}

/* The input of a layer: the output of what is below it. */
static tensor input_of(const struct stage *s, int64_t layer)
{
    return layer == 0 ? s->slot.embed.out : s->slot.layers[layer - 1].out;
}

static void tell_done(const struct stage *s, int64_t layer)
{
    if (s->layer_done != NULL) {
        s->layer_done(s->layer_done_context, layer);
    }
}

/* Layers [first, end). */
static void layers_forward(struct stage *s, int64_t first, int64_t end, bool training)
{
    for (int64_t i = first; i < end; i++) {
        struct bert_layer_call call = call_of(s, i, training);
        bert_layer_forward(s->x, &s->slot.layers[i], &s->slot.scratch, input_of(s, i), &s->weights->layers[i],
                           &call);
        tell_done(s, i);
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

void stage_forward(struct stage *s, bool training)
{
    int64_t n_layers = s->config->num_hidden_layers;
    struct bert_layer_call call = call_of(s, n_layers - 1, training);
    bert_embed_forward(s->x, &s->slot.embed, &s->weights->embed, &call);
    tell_done(s, -1);
    layers_forward(s, 0, n_layers, training);
    heads_forward(s, input_of(s, n_layers), &call);
}

void stage_loss(struct stage *s, tensor metrics)
{
    struct bert_layer_call call = call_of(s, 0, false);
    tensor scales = s->slot.block.loss_scales;
    if (has_mlm(s)) {
        bert_heads_mlm_loss(s->x, metrics, &s->slot.heads, tensor_slice(scales, BERT_LOSS_MLM, 1), &call);
    }
    if (has_nsp(s)) {
        bert_heads_nsp_loss(s->x, metrics, &s->slot.heads, tensor_slice(scales, BERT_LOSS_NSP, 1), &call);
    }
    if (has_qa(s)) {
        bert_qa_loss(s->x, metrics, &s->slot.qa, tensor_slice(scales, BERT_LOSS_SPAN, 1), &call);
    }
}

/* The gradient of the last layer's output h. */
static void heads_backward(struct stage *s, tensor dh, tensor h, const struct bert_layer_call *call)
{
    const struct bert_weights *w = s->weights, *g = s->grads;
    if (has_qa(s)) {
        bert_qa_backward(s->x, dh, &g->qa, &s->slot.qa, h, &w->qa, call->adds);
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

void stage_backward(struct stage *s, bool training, bool adds)
{
    struct bert_layer_call call = call_of(s, 0, training);
    call.adds = adds;
    int64_t n_layers = s->config->num_hidden_layers;
    tensor dx = s->slot.dx;
    heads_backward(s, dx, input_of(s, n_layers), &call);
    for (int64_t i = n_layers - 1; i >= 0; i--) {
        if (ends_chunk(s, i) && i < n_layers - 1) {
            queue_join(s->x, 0); /* the chunk above is done with the activations */
            layers_forward(s, i + 1 - s->recompute, i + 1, training);
        }
        call = call_of(s, i, training);
        call.adds = adds;
        bert_layer_backward(s->x, dx, &s->grads->layers[i], &s->slot.scratch, &s->slot.layers[i],
                            input_of(s, i), &s->weights->layers[i], &call);
    }
    queue_join(s->x, 0);
    bert_embed_backward(s->x, dx, &s->grads->embed, &s->slot.embed, &s->weights->embed, &call);
}

void stage_infer(struct stage *s, const struct bert_batch *batch)
{
    stage_begin(s, batch, &(struct stage_numbers){0});
    stage_round_changed(s);
    if (stage_graph_begin(s, STAGE_INFER)) {
        stage_forward(s, false);
        queue_graph_end(s->x);
    }
}
