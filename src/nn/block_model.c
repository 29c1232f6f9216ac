#include "nn/block_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

void block_model_add(struct block_model *m, struct block_part part)
{
    CHECK(m->n_parts < BLOCK_MODEL_MOST_PARTS, "%d parts of a model", m->n_parts + 1);
    m->parts[m->n_parts++] = part;
}

static void size_form(struct layer_form *f, const struct model *m)
{
    f->n_layers = m->n_layers;
    f->hidden = m->hidden_size;
    f->n_heads = m->n_heads;
    f->head_size = f->head_size > 0 ? f->head_size : f->hidden / f->n_heads;
    f->feed_forward = m->feed_forward_size;
}

void block_model_size(struct block_model *m, int64_t vocab_rows)
{
    struct weight_sizes *s = &m->sizes;
    const struct layer_form *f = &m->form;
    size_form(&m->form, &m->model);
    size_form(&m->other, &m->model);
    m->model.n_words = m->model.n_words > 0 ? m->model.n_words : m->model.vocab_size;
    m->model.form = m->wiring->name;
    m->model.hands_on_more = m->wiring->hands_on_more;
    m->model.n_kv_heads = layer_kv_heads(f);
    m->model.kv_width = layer_kv_width(f);
    s->real[DIM_ONE] = s->real[DIM_BIAS] = 1;
    s->real[DIM_TWO] = 2;
    s->real[DIM_HIDDEN] = f->hidden;
    s->real[DIM_HEADS] = layer_heads_width(f);
    s->real[DIM_KV] = layer_kv_width(f);
    s->real[DIM_HEAD] = f->head_size;
    s->real[DIM_FEED_FORWARD] = f->feed_forward;
    s->real[DIM_VOCAB] = m->model.vocab_size;
    s->real[DIM_LABELS] = m->model.labels.n;
    s->n_layers = m->model.n_layers;
    memcpy(s->padded, s->real, sizeof s->padded);
    s->padded[DIM_VOCAB] = vocab_rows;
}

void block_model_path(char path[MODEL_MODULE_BYTES], const struct model *m, int64_t layer)
{
    const struct block_model *b = block_model_of(m);
    int64_t number = b->layer_number == NULL ? layer : b->layer_number(b, layer);
    for (int i = 0; i < b->n_parts; i++) {
        if (b->parts[i].layer == BLOCK_EVERY_LAYER) {
            snprintf(path, MODEL_MODULE_BYTES, "%s%lld", b->parts[i].prefix, (long long)number);
        }
    }
}

typedef void part_visitor(void *context, void *part, const char *prefix, int64_t layer,
                          const struct weight_row *rows, int n_rows);

static void visit_layers(const struct model *m, const struct block_part *part,
                         struct block_weight_table *weights, part_visitor *visit, void *context)
{
    for (int64_t i = 0; i < block_model_of(m)->form.n_layers; i++) {
        char path[MODEL_MODULE_BYTES], prefix[MODEL_MODULE_BYTES + 1];
        block_model_path(path, m, i);
        snprintf(prefix, sizeof prefix, "%s.", path);
        int lacks = i == 0 ? part->not_first : 0;
        visit(context, weights == NULL ? NULL : &weights->layers[i], prefix, i, part->rows + lacks,
              part->n_rows - lacks);
    }
}

/* Calls `visit` for each struct of tensors in `weights`, which may be NULL. */
static void for_each_part(const struct model *m, void *weights, part_visitor *visit, void *context)
{
    const struct block_model *b = block_model_of(m);
    for (int i = 0; i < b->n_parts; i++) {
        const struct block_part *p = &b->parts[i];
        if (p->layer == BLOCK_EVERY_LAYER) {
            visit_layers(m, p, weights, visit, context);
        } else {
            visit(context, weights == NULL ? NULL : (char *)weights + p->place, p->prefix, p->layer, p->rows,
                  p->n_rows);
        }
    }
}

struct status block_model_declare(const struct model *m, struct param_table *table)
{
    struct weight_declaration d = {table, block_model_of(m)->sizes};
    for_each_part(m, NULL, weights_declare, &d);
    return param_table_status(table);
}

/* Views of layers, and of all else: where layers alone are in int8, other matrices lie with the vectors. */
static void view_part(void *views, void *part, const char *prefix, int64_t layer,
                      const struct weight_row *rows, int n_rows)
{
    struct weight_view *v = views;
    bool in_layers = layer >= 0 && layer < v->sizes.n_layers;
    weights_view(in_layers ? v : v + 1, part, prefix, layer, rows, n_rows);
}

struct status block_model_create_weights(const struct model *m, void **weights,
                                         const struct param_table *table, tensor matrices, tensor vectors,
                                         tensor biases)
{
    bool rounds_layers = m->type->int8 == MODEL_INT8_LAYERS && matrices.dtype == DTYPE_I8;
    const struct weight_sizes *sizes = &block_model_of(m)->sizes;
    int64_t n_layers = block_model_of(m)->form.n_layers;
    struct weight_view views[2] = {{table, *sizes, matrices, vectors, biases},
                                   {table, *sizes, rounds_layers ? vectors : matrices, vectors, biases}};
    struct block_weight_table *w = *weights = calloc(1, block_model_of(m)->weight_bytes);
    if (w != NULL) {
        w->layers = calloc((size_t)n_layers, sizeof *w->layers);
    }
    FAIL_IF(w == NULL || w->layers == NULL, STATUS_MEMORY, "out of memory for the views of %lld layers",
            (long long)n_layers);
    for_each_part(m, w, view_part, views);
    return status_ok();
}

void block_model_destroy_weights(void *weights)
{
    struct block_weight_table *w = weights;
    if (w != NULL) {
        free(w->layers);
        free(w);
    }
}

/* ---- activations ---- */

static bool has_others(const struct block_model *b)
{
    return b->others.every > 0;
}

static bool is_other(const struct block_model *b, int64_t layer)
{
    return layer_cycle_has(&b->others, layer);
}

static void check_sizes(const struct layer_form *a, const struct layer_form *b)
{
    CHECK(a->hidden == b->hidden && a->head_size == b->head_size && a->n_heads == b->n_heads &&
              a->n_kv_heads == b->n_kv_heads && a->feed_forward == b->feed_forward &&
              a->activation == b->activation && a->norm == b->norm && a->dropout == b->dropout &&
              a->attention_dropout == b->attention_dropout,
          "two forms of layers that cannot share memory");
}

struct status block_model_create_acts(const struct model *m, const struct param_part *part, void **acts)
{
    const struct block_model *b = block_model_of(m);
    struct block_stack *a = *acts = calloc(1, b->act_bytes);
    if (has_others(b)) {
        check_sizes(&b->form, &b->other);
    }
    if (a != NULL) {
        a->form = layer_form_slice(&b->form, part);
        a->other = layer_form_slice(&b->other, part);
        a->n_slices = param_part_slices(part);
        a->layers = calloc((size_t)m->n_layers, sizeof *a->layers);
    }
    return a != NULL && a->layers != NULL
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for the activations of %lld layers",
                              (long long)m->n_layers);
}

void block_model_destroy_acts(void *acts)
{
    struct block_stack *a = acts;
    if (a != NULL) {
        free(a->layers);
        free(a);
    }
}

static struct layer_memory layer_memory(struct model_memory m, const struct batch *sizes)
{
    return (struct layer_memory){m.dtype, m.stream, m.fp8, sizes->n_tokens, m.kept, m.n_row_parts};
}

void block_model_carve_layer(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                             struct model_memory memory, const struct batch *sizes)
{
    const struct block_model *b = block_model_of(m);
    struct block_stack *a = acts;
    if (layer == MODEL_INPUT_LAYER) {
        b->carve_input(b, acts, arena, layer_memory(memory, sizes));
        return;
    }
    b->wiring->carve(&a->layers[layer], arena, &a->form, layer_memory(memory, sizes));
    if (memory.kept) {
        self_attention_carve_bits(&a->layers[layer].attention, arena, &a->form, memory.device, sizes);
    }
}

void block_model_share_layer(void *acts, int64_t layer, int64_t of)
{
    struct block_stack *a = acts;
    block_share(&a->layers[layer], &a->layers[of]);
}

void block_model_carve_output(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                              struct model_memory memory, const struct batch *sizes)
{
    const struct block_model *b = block_model_of(m);
    struct block_stack *a = acts;
    if (layer == MODEL_INPUT_LAYER) {
        b->carve_input(b, acts, arena, layer_memory(memory, sizes));
    } else {
        b->wiring->carve_output(&a->layers[layer], arena, &a->form, layer_memory(memory, sizes));
    }
}

void block_model_carve_scratch(const struct model *m, void *acts, struct arena *arena,
                               struct model_memory memory, const struct batch *sizes)
{
    struct block_stack *a = acts;
    layer_scratch_carve(&a->scratch, arena, &a->form, layer_memory(memory, sizes));
    if (block_model_of(m)->norms_output) {
        norm_carve(&a->norm_out, arena, &a->form, layer_memory(memory, sizes));
    }
}

tensor block_model_output(const void *acts, int64_t layer)
{
    const struct block_stack *a = acts;
    return layer == MODEL_INPUT_LAYER ? a->in : a->layers[layer].out;
}

/* ---- memory that outlives batches ---- */

static const struct layer_form *form_of(const struct block_model *b, const struct block_stack *a,
                                        int64_t layer)
{
    return is_other(b, layer) ? &a->other : &a->form;
}

void block_model_carve_weights(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                               enum fp8_factors fp8)
{
    const struct block_model *b = block_model_of(m);
    struct block_stack *a = acts;
    self_attention_carve_weights(&a->layers[layer].attention, arena, &a->form, fp8);
    feed_forward_carve_weights(&a->layers[layer].ff, arena, &a->form, fp8);
    /* carved with the first layer of each form that is here */
    if (tensor_is_null(a->slopes) && form_of(b, a, layer)->positions == LAYER_POSITIONS_ALIBI) {
        a->slopes = arena_carve_1d(arena, DTYPE_F32, a->form.n_heads);
    }
    tensor *turns = is_other(b, layer) ? &a->other_turns : &a->turns;
    if (tensor_is_null(*turns) && form_of(b, a, layer)->positions == LAYER_POSITIONS_ROTARY) {
        const struct rotary *rotary = is_other(b, layer) ? &b->other_rotary : &b->rotary;
        *turns = arena_carve_2d(arena, DTYPE_F32, m->max_length, rotary->size);
    }
}

void block_model_round_weights(const struct model_pass *p, int64_t layer)
{
    const struct block_stack *a = p->acts;
    const struct block_weight_table *w = p->weights;
    exec_enter(p->x, "layer", layer);
    self_attention_round_weights(p->x, &a->layers[layer].attention, &w->layers[layer].attention);
    feed_forward_round_weights(p->x, &a->layers[layer].ff, &w->layers[layer].ff);
}

void block_model_carve_cache(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                             enum dtype dtype, int64_t n_pages)
{
    struct block_stack *a = acts;
    (void)m;
    self_attention_carve_cache(&a->layers[layer].attention, arena, &a->form, dtype, n_pages);
}

/* Head i of n, a power of two, has the slope 2^(-8 (i + 1) / n); of other numbers, the heads past the largest
 * power of two below take every other slope of twice that power (Press et al. 2021, appendix A.2). */
static float slope_of(int64_t i, int64_t n)
{
    int64_t power = 1;
    while (power * 2 <= n) {
        power *= 2;
    }
    return i < power ? (float)exp2(-8.0 * (double)(i + 1) / (double)power)
                     : (float)exp2(-4.0 * (double)(2 * (i - power) + 1) / (double)power);
}

void block_model_fill_constants(const struct model *m, void *acts, struct exec *x)
{
    const struct block_stack *a = acts;
    for (int64_t i = 0; i < a->form.n_heads && !tensor_is_null(a->slopes); i++) {
        x->ops->fill(x, tensor_slice(a->slopes, i, 1), (double)slope_of(a->form.first_head + i, m->n_heads));
    }
    if (!tensor_is_null(a->turns)) {
        rotary_fill(x, a->turns, &block_model_of(m)->rotary);
    }
    if (!tensor_is_null(a->other_turns)) {
        rotary_fill(x, a->other_turns, &block_model_of(m)->other_rotary);
    }
}

/* ---- passes ---- */

const struct row_picks *block_model_picks(const struct model *m, const struct block_stack *a, int64_t layer)
{
    return layer == m->n_layers - 1 && a->picks.n_lists > 0 ? &a->picks : NULL;
}

static tensor histories_of(const struct model_pass *p, int64_t layer)
{
    return tensor_is_null(p->histories)
               ? NULL_TENSOR
               : tensor_slice(p->histories, layer * LAYER_N_FACTORS, LAYER_N_FACTORS);
}

struct layer_call block_model_call(const struct model_pass *p, int64_t layer)
{
    const struct block_model *b = block_model_of(p->model);
    const struct block_stack *a = p->acts;
    const struct layer_form *form = form_of(b, a, layer);
    bool has_slopes = form->positions == LAYER_POSITIONS_ALIBI;
    return (struct layer_call){.form = form,
                               .stream = p->stream,
                               .picks = block_model_picks(p->model, a, layer),
                               .layer = layer,
                               .alibi_slopes = has_slopes ? a->slopes : NULL_TENSOR,
                               .turns = is_other(b, layer) ? a->other_turns : a->turns,
                               .training = p->training,
                               .histories = histories_of(p, layer),
                               .adds = p->adds};
}

/* The norm of a layer's output, which only the last one may have. */
static struct norm norm_of_output(const struct model_pass *p, int64_t layer)
{
    const struct block_stack *a = p->acts;
    const struct block_weight_table *w = p->weights, *g = p->grads;
    bool is_normed = block_model_of(p->model)->norms_output && layer == p->model->n_layers - 1;
    return is_normed ? (struct norm){&w->norm_out, g == NULL ? NULL : &g->norm_out, &a->norm_out,
                                     LAYER_FEED_FORWARD_OUT}
                     : (struct norm){0};
}

static struct block block_of(const struct model_pass *p, int64_t layer)
{
    const struct block_stack *a = p->acts;
    const struct block_weight_table *w = p->weights, *g = p->grads;
    return (struct block){.w = &w->layers[layer],
                          .g = g == NULL ? NULL : &g->layers[layer],
                          .acts = &a->layers[layer],
                          .scratch = &a->scratch,
                          .norm_out = norm_of_output(p, layer),
                          .in = block_model_output(a, layer - 1),
                          .residual = layer == 0 ? NULL_TENSOR : a->layers[layer - 1].norm_2.sum};
}

/* In fp8 the layer below rounds the input of the next, if both are of this pass. */
void block_model_layer_forward(const struct model_pass *p, int64_t layer)
{
    const struct block_stack *a = p->acts;
    struct layer_call call = block_model_call(p, layer);
    struct fp8_factor in_fp8 = self_attention_input(&a->layers[layer].attention, &call), next_fp8;
    struct block b = block_of(p, layer);
    if (layer > p->first) {
        b.in = fp8_rounded_by_maker(b.in, &in_fp8);
    }
    if (layer + 1 < p->end) {
        struct layer_call next = block_model_call(p, layer + 1);
        next_fp8 = self_attention_input(&a->layers[layer + 1].attention, &next);
        call.next = &next_fp8;
    }
    block_model_of(p->model)->wiring->forward(p->x, &b, &call);
}

void block_model_layer_backward(const struct model_pass *p, int64_t layer, tensor dx)
{
    struct layer_call call = block_model_call(p, layer);
    struct block b = block_of(p, layer);
    block_model_of(p->model)->wiring->backward(p->x, &b, dx, &call);
}

void block_model_visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                                 model_gradient_visitor *visitor, void *context)
{
    char path[MODEL_MODULE_BYTES];
    (void)acts;
    if (layer >= 0 && layer < m->n_layers) {
        block_model_path(path, m, layer);
        visitor(context, path, BATCH_OF_TOKENS, true, dx);
    }
}
