#include "pass/stage.h"

#include "dev/queue.h"
#include "ops/op_watch.h"

#include <stdlib.h>

static int64_t count_slots(const struct stage *s)
{
    return s->config->part.n_ranges * s->config->n_slots;
}

struct status stage_init(struct stage *s)
{
    s->slots = calloc((size_t)count_slots(s), sizeof *s->slots);
    FAIL_IF(s->slots == NULL, STATUS_MEMORY, "out of memory for %lld micro-batches in flight",
            (long long)count_slots(s));
    s->slot = s->slots;
    for (int64_t i = 0; i < count_slots(s); i++) {
        s->slots[i].range = s->config->part.ranges[i / s->config->n_slots];
        TRY(s->config->model->type->create_acts(s->config->model, &s->config->part, &s->slots[i].acts));
    }
    return status_ok();
}

void stage_fini(struct stage *s)
{
    for (int64_t i = 0; s->slots != NULL && i < count_slots(s); i++) {
        if (s->slots[i].acts != NULL) {
            s->config->model->type->destroy_acts(s->slots[i].acts);
        }
    }
    free(s->slots);
    s->slots = NULL;
    s->slot = NULL;
}

/* Bytes of a slot of this range, if its first slot is carved. */
static size_t range_bytes(const struct stage *s, int64_t range)
{
    return s->slots[range * s->config->n_slots].arena.used;
}

static void set_arenas(struct stage *s, struct arena arena)
{
    for (int64_t i = 0; i < count_slots(s); i++) {
        s->slots[i].arena = arena;
    }
}

/* Ranges have slots of different sizes, since one has the heads. */
void stage_share_arena(struct stage *s, struct arena arena)
{
    set_arenas(s, arena_measuring());
    if (arena.base == NULL) {
        return;
    }
    stage_carve_largest(s);
    size_t used = 0;
    for (int64_t k = 0; k < s->config->part.n_ranges; k++) {
        size_t bytes = range_bytes(s, k);
        for (int64_t i = 0; i < s->config->n_slots; i++) {
            s->slots[k * s->config->n_slots + i].arena = arena_over(arena.base + used, bytes);
            used += bytes;
        }
    }
}

void stage_select(struct stage *s, int chunk, int64_t slot)
{
    CHECK(slot >= 0 && slot < s->config->n_slots && chunk >= 0 && chunk < s->config->part.n_ranges,
          "slot %lld of %lld in range %d of %d", (long long)slot, (long long)s->config->n_slots, chunk,
          s->config->part.n_ranges);
    s->slot = &s->slots[chunk * s->config->n_slots + slot];
    s->x->dropout_key = s->slot->block.dropout_key.data;
}

size_t stage_bytes(const struct stage *s)
{
    size_t bytes = 0;
    for (int k = 0; k < s->config->part.n_ranges; k++) {
        bytes += (size_t)s->config->n_slots * range_bytes(s, k);
    }
    return bytes;
}

static bool has_input(const struct stage *s)
{
    return s->slot->range.first == MODEL_INPUT_LAYER;
}

static bool has_heads(const struct stage *s)
{
    return s->slot->range.end == s->config->model->n_layers + 1;
}

/* Layers [first_layer, end_layer) of the slot's range, without input layer and heads. */
static int64_t first_layer(const struct stage *s)
{
    return has_input(s) ? 0 : s->slot->range.first;
}

static int64_t end_layer(const struct stage *s)
{
    return has_heads(s) ? s->config->model->n_layers : s->slot->range.end;
}

/* Carves memory of a layer that outlives batches: its weights in fp8, or its cache. */
typedef void layer_carver(const struct stage *s, void *acts, int64_t layer, struct arena *arena);

/* Carves for each layer once: all slots of a range view the same memory. */
static void carve_once(struct stage *s, struct arena *arena, layer_carver *carve_layer)
{
    struct arena before = *arena;
    for (int64_t k = 0; k < count_slots(s); k++) {
        if (k % s->config->n_slots == 0) { /* the first of a range */
            before = *arena;
        }
        *arena = before;
        s->slot = &s->slots[k];
        for (int64_t i = first_layer(s); i < end_layer(s); i++) {
            carve_layer(s, s->slot->acts, i, arena);
        }
    }
    s->slot = s->slots;
}

static void carve_layer_weights(const struct stage *s, void *acts, int64_t layer, struct arena *arena)
{
    s->config->model->type->carve_weights(s->config->model, acts, layer, arena, s->fp8);
}

static void carve_layer_cache(const struct stage *s, void *acts, int64_t layer, struct arena *arena)
{
    s->config->model->type->carve_cache(s->config->model, acts, layer, arena, s->config->precision.dtype,
                                        s->config->cache_pages);
}

void stage_carve_weights(struct stage *s, struct arena *arena)
{
    carve_once(s, arena, carve_layer_weights);
}

void stage_carve_cache(struct stage *s, struct arena *arena)
{
    if (s->config->cache_pages > 0) {
        carve_once(s, arena, carve_layer_cache);
    }
}

void stage_fill_constants(struct stage *s)
{
    const struct model *m = s->config->model;
    if (m->type->fill_constants != NULL) {
        for (int k = 0; k < s->config->part.n_ranges; k++) {
            m->type->fill_constants(m, s->slots[k * s->config->n_slots].acts, s->x);
        }
    }
}

void stage_carve_histories(struct stage *s, struct arena *arena)
{
    if (s->fp8 != FP8_NONE) {
        s->histories =
            arena_carve_2d(arena, DTYPE_F32, s->config->model->n_layers * s->config->model->n_factors, 2);
    }
}

void stage_advance_histories(struct stage *s)
{
    if (!tensor_is_null(s->histories)) {
        tensor before = tensor_columns(s->histories, 0, 1), now = tensor_columns(s->histories, 1, 1);
        s->x->ops->cast(s->x, before, now);
        s->x->ops->fill(s->x, now, 0);
    }
}

void stage_forget_histories(struct stage *s)
{
    if (!tensor_is_null(s->histories)) {
        s->x->ops->fill(s->x, tensor_columns(s->histories, 1, 1), 0);
    }
}

/* The number of layers with their own activations; layer i uses those of layer i minus this number. */
static int64_t layers_kept(const struct stage *s)
{
    if (!s->config->learns) {
        return 2; /* without a backward, layers alternate between the activations of two */
    }
    return s->config->recompute > 0 ? s->config->recompute : end_layer(s) - first_layer(s);
}

static bool ends_chunk(const struct stage *s, int64_t layer)
{
    return s->config->learns && s->config->recompute > 0 &&
           (layer - first_layer(s) + 1) % s->config->recompute == 0;
}

/* The number of ranks that divide the rows of the residual stream. */
static int row_parts(const struct stage *s)
{
    return s->config->sequence_parallel ? param_part_slices(&s->config->part) : 1;
}

static void carve_layers(struct stage *s, struct model_memory memory, const struct batch *sizes)
{
    const struct model_type *type = s->config->model->type;
    int64_t kept = layers_kept(s);
    for (int64_t i = first_layer(s); i < end_layer(s); i++) {
        if (i - first_layer(s) < kept) {
            type->carve_layer(s->config->model, s->slot->acts, i, &s->slot->arena, memory, sizes);
            continue;
        }
        type->share_layer(s->slot->acts, i, i - kept);
        if (ends_chunk(s, i)) { /* the input of the next chunk */
            type->carve_output(s->config->model, s->slot->acts, i, &s->slot->arena, memory, sizes);
        }
    }
}

/* Planning and running carve by this function alone, so a plan counts the bytes that a run takes. */
static void carve(struct stage *s, const struct batch *sizes)
{
    const struct model *m = s->config->model;
    struct stage_slot *slot = s->slot;
    enum dtype stream = precision_stream(s->config->precision);
    struct model_memory memory = {s->config->precision.dtype, stream,       s->fp8,      s->config->learns,
                                  s->config->whole_logits,    row_parts(s), s->x->device};
    slot->capacity = *sizes;
    slot->arena.used = 0;
    stage_batch_carve(&slot->block, &slot->arena, &m->layout, sizes);
    slot->block.stream.divides_rows = row_parts(s) > 1;
    s->x->dropout_key = slot->block.dropout_key.data;
    if (has_input(s)) {
        m->type->carve_layer(m, slot->acts, MODEL_INPUT_LAYER, &slot->arena, memory, sizes);
    } else { /* received from the previous stage */
        m->type->carve_output(m, slot->acts, first_layer(s) - 1, &slot->arena, memory, sizes);
    }
    carve_layers(s, memory, sizes);
    if (has_heads(s)) {
        m->type->carve_heads(m, slot->acts, &slot->arena, memory, sizes);
    }
    m->type->carve_scratch(m, slot->acts, &slot->arena, memory, sizes);
    slot->dx = arena_carve_2d(&slot->arena, stream, sizes->n_tokens / row_parts(s), m->hidden_size);
}

void stage_carve_largest(struct stage *s)
{
    struct batch largest = stage_batch_largest(s->x->device, s->config->limits);
    for (int k = s->config->part.n_ranges - 1; k >= 0; k--) {
        stage_select(s, k, 0);
        carve(s, &largest);
    }
}

void stage_reserve(struct stage *s)
{
    stage_carve_largest(s);
    queue_stage(s->x, s->slot->block.memory, s->slot->block.bytes);
}

void stage_begin(struct stage *s, const struct batch *batch, const struct stage_numbers *numbers)
{
    struct batch capacity = stage_batch_capacity(s->x->device, s->config->limits, batch);
    exec_enter(s->x, "a batch", -1);
    carve(s, &capacity);
    stage_batch_send(&s->slot->block, s->x, batch, numbers);
}

void stage_send_numbers(struct stage *s, const struct stage_numbers *numbers)
{
    stage_batch_send(&s->slot->block, s->x, NULL, numbers);
}

tensor stage_scalars(const struct stage *s)
{
    return s->slot->block.scalars;
}

tensor stage_loss_scales(const struct stage *s)
{
    return s->slot->block.loss_scales;
}

tensor stage_field(const struct stage *s, int field)
{
    return s->slot->block.stream.fields[field];
}

/* Whether gradient_done is called in this work, so that a recording of it has segments. */
static bool tells_gradients(const struct stage *s, enum stage_work work)
{
    bool has_backward = work == STAGE_TRAIN_FIRST || work == STAGE_TRAIN_NEXT ||
                        work == STAGE_BACKWARD_FIRST || work == STAGE_BACKWARD_NEXT;
    return has_backward && s->gradient_done != NULL;
}

/* A recording has one segment for each bucket. queue_graph_begin has replayed the first. */
static void replay_segments(struct stage *s)
{
    for (int i = 0; i < s->buckets.n; i++) {
        if (i > 0) {
            queue_graph_replay(s->x);
        }
        s->gradient_done(s->gradient_done_context, i);
    }
}

/* The key names everything that a recording depends on: the work, the slot whose memory it uses, and the
 * sizes by which that memory was carved.  Numbers that change with the step are not in it: they are read from
 * the slot's block. */
bool stage_graph_begin(struct stage *s, enum stage_work work)
{
    static const struct batch none;
    const struct batch *c = work == STAGE_UPDATE ? &none : &s->slot->capacity;
    bool tells = tells_gradients(s, work);
    if (op_watch_is(s->x->ops) || s->tap != NULL) {
        return !failed(s->x->status);
    }
    const int64_t key[] = {work,        s->slot - s->slots, c->n_tokens, c->n_sequences, c->n_streams,
                           c->n_labels, c->max_seqlen,      c->max_keys, tells};
    bool gives = queue_graph_begin(s->x, key, sizeof key);
    if (tells && !gives && !failed(s->x->status)) {
        replay_segments(s);
    }
    return gives;
}

void stage_graph_end(struct stage *s, enum stage_work work)
{
    queue_graph_end(s->x);
    if (tells_gradients(s, work)) {
        s->gradient_done(s->gradient_done_context, s->buckets.n - 1);
    }
}

/* Only training uses histories: results of evaluations and inference depend on the weights alone.  A
 * diagnosis, which reads every layer of a step that was not finite, does not use them either. */
static struct model_pass pass_of(const struct stage *s, bool training, bool adds)
{
    return (struct model_pass){
        .x = s->x,
        .model = s->config->model,
        .acts = s->slot->acts,
        .weights = s->weights,
        .grads = s->grads,
        .stream = &s->slot->block.stream,
        .loss_scales = s->slot->block.loss_scales,
        .histories = training && !(s->tap != NULL && s->tap->finds_scales) ? s->histories : NULL_TENSOR,
        .training = training,
        .adds = adds};
}

void stage_round_weights(struct stage *s)
{
    struct model_pass p = pass_of(s, false, false);
    struct stage_slot *selected = s->slot;
    for (int k = 0; s->fp8 != FP8_NONE && k < s->config->part.n_ranges; k++) {
        s->slot = &s->slots[k * s->config->n_slots];
        p.acts = s->slot->acts;
        for (int64_t i = first_layer(s); i < end_layer(s); i++) {
            s->config->model->type->round_weights(&p, i);
        }
    }
    s->slot = selected;
}

void stage_weights_rounded(struct stage *s)
{
    s->rounded = failed(s->x->status) ? 0 : *s->version;
}

void stage_round_changed(struct stage *s)
{
    if (s->rounded != *s->version) {
        stage_round_weights(s);
        stage_weights_rounded(s);
    }
}

static void tell_done(const struct stage *s, int64_t layer)
{
    if (s->tap != NULL) {
        s->tap->activations(s->tap, layer);
    }
}

/* Layers [first, end).  The last one does not round its output for the next layer: that memory has the input
 * of the recomputed layers. */
static void layers_forward(const struct stage *s, struct model_pass *p, int64_t first, int64_t end)
{
    p->first = first, p->end = end;
    for (int64_t i = first; i < end; i++) {
        s->config->model->type->layer_forward(p, i);
        tell_done(s, i);
    }
}

void stage_forward(struct stage *s, bool training)
{
    struct model_pass p = pass_of(s, training, false);
    if (has_input(s)) {
        s->config->model->type->input_forward(&p);
        tell_done(s, MODEL_INPUT_LAYER);
    }
    layers_forward(s, &p, first_layer(s), end_layer(s));
}

void stage_heads(struct stage *s, bool training)
{
    struct model_pass p = pass_of(s, training, false);
    if (has_heads(s)) {
        s->config->model->type->heads_forward(&p);
        tell_done(s, s->config->model->n_layers);
    }
}

void stage_measure(struct stage *s, tensor sums, bool training)
{
    struct model_pass p = pass_of(s, training, false);
    if (has_heads(s)) {
        s->config->model->type->heads_measure(&p, sums);
    }
}

tensor stage_head_output(const struct stage *s, enum model_output output)
{
    const struct model *m = s->config->model;
    return output == MODEL_HIDDEN            ? stage_output(s)
           : model_task_has(m->task, output) ? m->type->head_output(s->slot->acts, output)
                                             : NULL_TENSOR;
}

void stage_visit(const struct stage *s, int64_t layer, model_visitor *visitor, void *context)
{
    const struct model *m = s->config->model;
    m->type->visit(m, s->slot->acts, layer, visitor, context);
}

void stage_visit_gradients(const struct stage *s, int64_t layer, model_gradient_visitor *visitor,
                           void *context)
{
    const struct model *m = s->config->model;
    m->type->visit_gradients(m, s->slot->acts, layer, s->slot->dx, visitor, context);
}

tensor stage_gradient(const struct stage *s)
{
    return s->slot->dx;
}

tensor stage_output(const struct stage *s)
{
    return s->config->model->type->output(s->slot->acts, end_layer(s) - 1);
}

tensor stage_input(const struct stage *s)
{
    return s->config->model->type->output(s->slot->acts, first_layer(s) - 1);
}

/* Reports that a layer's gradients are queued.  The last bucket ends with the work, so stage_graph_end
 * reports it. */
static void tell_gradient(const struct stage *s, int64_t layer)
{
    int bucket = s->gradient_done == NULL ? -1 : param_buckets_find(&s->buckets, layer);
    if (bucket >= 0 && bucket < s->buckets.n - 1) {
        queue_graph_cut(s->x);
        s->gradient_done(s->gradient_done_context, bucket);
        queue_graph_resume(s->x);
    }
    if (s->tap != NULL) {
        s->tap->gradients(s->tap, layer);
    }
}

static bool has_backward(const struct stage *s, int64_t layer)
{
    return layer - MODEL_INPUT_LAYER >= s->n_frozen;
}

void stage_answer(struct stage *s)
{
    if (s->config->losses_only) {
        stage_measure(s, NULL_TENSOR, false);
    } else {
        stage_heads(s, false);
    }
}

void stage_learn(struct stage *s, tensor sums, bool adds)
{
    struct model_pass p = pass_of(s, true, adds);
    if (!has_heads(s)) {
        return;
    }
    if (s->tap != NULL) { /* the backward would overwrite the activations that the tap reads */
        stage_heads(s, true);
    }
    s->config->model->type->heads_learn(&p, s->slot->dx, sums);
    tell_gradient(s, s->config->model->n_layers);
}

/* With recomputation the layers of a chunk use the memory of the chunk above.  When the backward has passed
 * that chunk, the forward of the next one runs again, from the kept output of the chunk below it. */
void stage_backward(struct stage *s, bool training, bool adds)
{
    const struct model_type *type = s->config->model->type;
    struct model_pass p = pass_of(s, training, adds);
    tensor dx = s->slot->dx;
    for (int64_t i = end_layer(s) - 1; i >= first_layer(s) && has_backward(s, i); i--) {
        if (ends_chunk(s, i) && i < end_layer(s) - 1) {
            queue_join(s->x, 0); /* the chunk above no longer needs the activations */
            layers_forward(s, &p, i + 1 - s->config->recompute, i + 1);
        }
        type->layer_backward(&p, i, dx);
        tell_gradient(s, i);
    }
    queue_join(s->x, 0);
    if (has_input(s) && has_backward(s, MODEL_INPUT_LAYER)) {
        type->input_backward(&p, dx);
    }
}

void stage_infer(struct stage *s, const struct batch *batch)
{
    stage_begin(s, batch, &(struct stage_numbers){0});
    stage_round_changed(s);
    if (stage_graph_begin(s, STAGE_INFER)) {
        stage_forward(s, false);
        stage_answer(s);
        stage_graph_end(s, STAGE_INFER);
    }
}
