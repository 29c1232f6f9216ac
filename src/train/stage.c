#include "train/stage.h"

#include "dev/queue.h"
#include "ops/op_watch.h"

struct status stage_init(struct stage *s)
{
    return s->model->type->create_acts(s->model, &s->slot.acts);
}

void stage_fini(struct stage *s)
{
    if (s->slot.acts != NULL) {
        s->model->type->destroy_acts(s->slot.acts);
        s->slot.acts = NULL;
    }
}

void stage_carve_weights(struct stage *s, struct arena *arena)
{
    for (int64_t i = 0; i < s->model->n_layers; i++) {
        s->model->type->carve_weights(s->model, s->slot.acts, i, arena, s->fp8);
    }
}

/* How many layers have activations of their own; layer i uses those of layer i minus this many. */
static int64_t layers_kept(const struct stage *s)
{
    if (!s->learns) {
        return 2; /* without a backward, two layers' activations serve all in turn */
    }
    return s->recompute > 0 ? s->recompute : s->model->n_layers;
}

static bool ends_chunk(const struct stage *s, int64_t layer)
{
    return s->learns && s->recompute > 0 && (layer + 1) % s->recompute == 0;
}

static void carve_layers(struct stage *s, struct model_memory memory, const struct batch *sizes)
{
    const struct model_type *type = s->model->type;
    int64_t kept = layers_kept(s);
    for (int64_t i = 0; i < s->model->n_layers; i++) {
        if (i < kept) {
            type->carve_layer(s->model, s->slot.acts, i, &s->arena, memory, sizes);
            continue;
        }
        type->share_layer(s->slot.acts, i, i - kept);
        if (ends_chunk(s, i)) { /* the input of the next chunk */
            type->carve_output(s->model, s->slot.acts, i, &s->arena, memory, sizes);
        }
    }
}

static void carve(struct stage *s, const struct batch *sizes)
{
    const struct model *m = s->model;
    struct model_memory memory = {s->dtype, s->fp8, s->learns, s->x->device};
    s->capacity = *sizes;
    s->arena.used = 0;
    stage_batch_carve(&s->slot.block, &s->arena, m->layout, sizes);
    s->x->dropout_key = s->slot.block.dropout_key.data;
    m->type->carve_layer(m, s->slot.acts, MODEL_INPUT_LAYER, &s->arena, memory, sizes);
    carve_layers(s, memory, sizes);
    m->type->carve_heads(m, s->slot.acts, &s->arena, memory, sizes);
    m->type->carve_scratch(m, s->slot.acts, &s->arena, memory, sizes);
    s->slot.dx = arena_carve_2d(&s->arena, s->dtype, sizes->n_tokens, m->hidden_size);
}

void stage_carve_largest(struct stage *s)
{
    struct batch largest = stage_batch_largest(s->x->device, s->limits);
    carve(s, &largest);
}

void stage_reserve(struct stage *s)
{
    stage_carve_largest(s);
    queue_stage(s->x, s->slot.block.memory, s->slot.block.bytes);
}

void stage_begin(struct stage *s, const struct batch *batch, const struct stage_numbers *numbers)
{
    struct batch capacity = stage_batch_capacity(s->x->device, s->limits, batch);
    exec_enter(s->x, "a batch", -1);
    carve(s, &capacity);
    stage_batch_send(&s->slot.block, s->x, batch, numbers);
}

bool stage_graph_begin(struct stage *s, enum stage_work work)
{
    static const struct batch none;
    const struct batch *c = work == STAGE_UPDATE ? &none : &s->capacity;
    if (op_watch_is(s->x->ops)) {
        return !failed(s->x->status);
    }
    const int64_t key[] = {work, c->n_tokens, c->n_sequences, c->n_streams, c->n_labels, c->max_seqlen};
    return queue_graph_begin(s->x, key, sizeof key);
}

static struct model_pass pass_of(const struct stage *s, bool training, bool adds)
{
    return (struct model_pass){.x = s->x,
                               .model = s->model,
                               .acts = s->slot.acts,
                               .weights = s->weights,
                               .grads = s->grads,
                               .stream = &s->slot.block.stream,
                               .loss_scales = s->slot.block.loss_scales,
                               .training = training,
                               .adds = adds};
}

void stage_round_weights(struct stage *s)
{
    struct model_pass p = pass_of(s, false, false);
    for (int64_t i = 0; s->fp8 != FP8_NONE && i < s->model->n_layers; i++) {
        s->model->type->round_weights(&p, i);
    }
}

void stage_round_changed(struct stage *s)
{
    if (s->rounded != *s->version) {
        stage_round_weights(s);
        s->rounded = failed(s->x->status) ? 0 : *s->version;
    }
}

static void tell_done(const struct stage *s, int64_t layer)
{
    if (s->layer_done != NULL) {
        s->layer_done(s->layer_done_context, layer);
    }
}

/* Layers [first, end). */
static void layers_forward(const struct stage *s, const struct model_pass *p, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        s->model->type->layer_forward(p, i);
        tell_done(s, i);
    }
}

void stage_forward(struct stage *s, bool training)
{
    struct model_pass p = pass_of(s, training, false);
    s->model->type->input_forward(&p);
    tell_done(s, MODEL_INPUT_LAYER);
    layers_forward(s, &p, 0, s->model->n_layers);
    s->model->type->heads_forward(&p);
    tell_done(s, s->model->n_layers);
}

tensor stage_head_output(const struct stage *s, int output)
{
    return s->model->type->head_output(s->slot.acts, output);
}

tensor stage_output(const struct stage *s)
{
    return s->model->type->output(s->slot.acts, s->model->n_layers - 1);
}

void stage_loss(struct stage *s, tensor sums)
{
    struct model_pass p = pass_of(s, false, false);
    s->model->type->loss(&p, sums);
}

void stage_backward(struct stage *s, bool training, bool adds)
{
    const struct model_type *type = s->model->type;
    struct model_pass p = pass_of(s, training, adds);
    int64_t n_layers = s->model->n_layers;
    type->heads_backward(&p, s->slot.dx);
    for (int64_t i = n_layers - 1; i >= 0; i--) {
        if (ends_chunk(s, i) && i < n_layers - 1) {
            queue_join(s->x, 0); /* the chunk above is done with the activations */
            layers_forward(s, &p, i + 1 - s->recompute, i + 1);
        }
        type->layer_backward(&p, i, s->slot.dx);
    }
    queue_join(s->x, 0);
    type->input_backward(&p, s->slot.dx);
}

void stage_infer(struct stage *s, const struct batch *batch)
{
    stage_begin(s, batch, &(struct stage_numbers){0});
    stage_round_changed(s);
    if (stage_graph_begin(s, STAGE_INFER)) {
        stage_forward(s, false);
        queue_graph_end(s->x);
    }
}
