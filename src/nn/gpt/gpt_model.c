#include "nn/gpt/gpt_config.h"

#include "core/integers.h"
#include "nn/gpt/gpt_layer.h"
#include "nn/model_measures.h"
#include "nn/text_batch_layout.h"
#include "nn/word_head.h"
#include "nn/word_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct gpt {
    struct model model; /* first */
    struct gpt_config config;
    struct layer_form form;
};

static const struct gpt *gpt_of(const struct model *m)
{
    return (const struct gpt *)m;
}

/* ---- weights ---- */

struct gpt_weights {
    tensor word;                 /* [V, H] E */
    tensor position;             /* [P, H] GPT-2's */
    struct norm_weights norm_in; /* BLOOM's */
    struct gpt_layer_weights *layers;
    struct norm_weights norm_out; /* LN_f */
};

#define WEIGHTS struct gpt_weights

static const struct weight_row gpt2_input_rows[] = {
    WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "wte.weight"),
    WEIGHT_MATRIX(position, POSITIONS, HIDDEN, NORMAL, WHOLE, "wpe.weight"),
};

static const struct weight_row bloom_input_rows[] = {
    WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "word_embeddings.weight"),
    WEIGHT_VECTOR(norm_in.gamma, HIDDEN, ONE, OF_ROWS, "word_embeddings_layernorm.weight"),
    WEIGHT_VECTOR(norm_in.beta, HIDDEN, ZERO, OF_ROWS, "word_embeddings_layernorm.bias"),
};

static const struct weight_row output_rows[] = {
    WEIGHT_VECTOR(norm_out.gamma, HIDDEN, ONE, WHOLE, "ln_f.weight"),
    WEIGHT_VECTOR(norm_out.beta, HIDDEN, ZERO, WHOLE, "ln_f.bias"),
};

enum {
    GPT2_N_INPUT_ROWS = sizeof gpt2_input_rows / sizeof gpt2_input_rows[0],
    BLOOM_N_INPUT_ROWS = sizeof bloom_input_rows / sizeof bloom_input_rows[0],
    N_OUTPUT_ROWS = sizeof output_rows / sizeof output_rows[0],
    VOCAB_GRAIN =
        8, /* rows of the table in memory are a multiple, so that products of the head are aligned */
};

static struct weight_sizes sizes_of(const struct gpt_config *c)
{
    struct weight_sizes s = {.real = {[DIM_ONE] = 1,
                                      [DIM_BIAS] = 1,
                                      [DIM_HIDDEN] = c->hidden_size,
                                      [DIM_FEED_FORWARD] = c->feed_forward_size,
                                      [DIM_VOCAB] = c->vocab_size,
                                      [DIM_POSITIONS] = c->n_positions},
                             .initializer_range = c->initializer_range,
                             .n_layers = c->n_layers};
    for (int d = 0; d < DIM_COUNT; d++) {
        s.padded[d] = s.real[d];
    }
    s.padded[DIM_VOCAB] = int_round_up(c->vocab_size, VOCAB_GRAIN);
    return s;
}

/* Calls `visit` for each table of rows, with the struct that it fills. */
typedef void part_visitor(void *context, void *part, const char *prefix, int64_t layer,
                          const struct weight_row *rows, int n_rows);

static void for_each_part(const struct gpt_config *c, struct gpt_weights *w, part_visitor *visit,
                          void *context)
{
    visit(context, w, "transformer.", MODEL_INPUT_LAYER, c->alibi ? bloom_input_rows : gpt2_input_rows,
          c->alibi ? (int)BLOOM_N_INPUT_ROWS : (int)GPT2_N_INPUT_ROWS);
    for (int64_t i = 0; i < c->n_layers; i++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "transformer.h.%lld.", (long long)i);
        visit(context, w->layers == NULL ? NULL : &w->layers[i], prefix, i,
              c->alibi ? bloom_layer_rows : gpt2_layer_rows, GPT_LAYER_N_ROWS);
    }
    visit(context, w, "transformer.", c->n_layers, output_rows, N_OUTPUT_ROWS);
}

static struct status declare(const struct model *m, struct param_table *table)
{
    const struct gpt_config *c = &gpt_of(m)->config;
    struct weight_declaration d = {table, sizes_of(c)};
    struct gpt_weights none = {.layers = NULL};
    for_each_part(c, &none, weights_declare, &d);
    return param_table_status(table);
}

static void destroy_weights(void *weights)
{
    struct gpt_weights *w = weights;
    if (w != NULL) {
        free(w->layers);
        free(w);
    }
}

static struct status create_weights(const struct model *m, void **weights, const struct param_table *table,
                                    tensor matrices, tensor vectors, tensor biases)
{
    const struct gpt_config *c = &gpt_of(m)->config;
    struct gpt_weights *w = *weights = calloc(1, sizeof *w);
    if (w != NULL) {
        w->layers = calloc((size_t)c->n_layers, sizeof *w->layers);
    }
    FAIL_IF(w == NULL || w->layers == NULL, STATUS_MEMORY, "out of memory for the views of %lld layers",
            (long long)c->n_layers);
    struct weight_view v = {table, sizes_of(c), matrices, vectors, biases};
    for_each_part(c, w, weights_view, &v);
    return status_ok();
}

/* ---- activations ---- */

struct gpt_acts {
    struct layer_form form;         /* form of the slice of layers that is here */
    int n_slices;                   /* slices of layers and words, on all ranks */
    tensor in;                      /* [R, H] x, R as in gpt_layer.h */
    tensor words, mean_in, rstd_in; /* [R, H], [R], [R] E[id] and its norm, BLOOM's */
    struct gpt_layer_acts *layers;
    tensor slopes; /* f32 [N] ALiBi's slopes of the heads that are here; null without it */
    tensor read, z, mean_out, rstd_out, dz; /* [M, H], [M, H], [M], [M], [M, H] the rows that are read */
    struct word_head_acts head;
    struct layer_scratch scratch;
};

static void destroy_acts(void *acts)
{
    struct gpt_acts *a = acts;
    if (a != NULL) {
        free(a->layers);
        free(a);
    }
}

static struct status create_acts(const struct model *m, const struct param_part *part, void **acts)
{
    struct gpt_acts *a = *acts = calloc(1, sizeof *a);
    if (a != NULL) {
        a->form = layer_form_slice(&gpt_of(m)->form, part);
        a->n_slices = param_part_slices(part);
        a->layers = calloc((size_t)m->n_layers, sizeof *a->layers);
    }
    return a != NULL && a->layers != NULL
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for the activations of %lld layers",
                              (long long)m->n_layers);
}

static struct layer_memory layer_memory(struct model_memory m, const struct batch *sizes)
{
    return (struct layer_memory){m.dtype, m.stream, m.fp8, sizes->n_tokens, m.kept, m.n_row_parts};
}

static void carve_input(const struct model *m, struct gpt_acts *a, struct arena *arena,
                        struct layer_memory memory)
{
    enum dtype vector = dtype_of_vectors(memory.dtype);
    int64_t r = layer_own_rows(memory);
    a->in = arena_carve_2d(arena, memory.stream, r, m->hidden_size);
    if (gpt_of(m)->config.alibi) {
        a->words = arena_carve_2d(arena, memory.dtype, r, m->hidden_size);
        a->mean_in = arena_carve_1d(arena, vector, r);
        a->rstd_in = arena_carve_1d(arena, vector, r);
    }
}

static void carve_layer(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        struct model_memory memory, const struct batch *sizes)
{
    struct gpt_acts *a = acts;
    if (layer == MODEL_INPUT_LAYER) {
        carve_input(m, a, arena, layer_memory(memory, sizes));
        return;
    }
    gpt_layer_carve(&a->layers[layer], arena, &a->form, layer_memory(memory, sizes));
    if (memory.kept) {
        self_attention_carve_bits(&a->layers[layer].attention, arena, &a->form, memory.device, sizes);
    }
}

static void share_layer(void *acts, int64_t layer, int64_t of)
{
    struct gpt_acts *a = acts;
    gpt_layer_share(&a->layers[layer], &a->layers[of]);
}

static void carve_output(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                         struct model_memory memory, const struct batch *sizes)
{
    struct gpt_acts *a = acts;
    if (layer == MODEL_INPUT_LAYER) {
        carve_input(m, a, arena, layer_memory(memory, sizes));
    } else {
        gpt_layer_carve_output(&a->layers[layer], arena, &a->form, layer_memory(memory, sizes));
    }
}

static void carve_heads(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                        const struct batch *sizes)
{
    struct gpt_acts *a = acts;
    enum dtype vector = dtype_of_vectors(memory.dtype);
    int64_t n = sizes->n_labels, h = m->hidden_size;
    int64_t v = weights_vocab_rows(sizes_of(&gpt_of(m)->config).padded[DIM_VOCAB], a->n_slices);
    a->read = arena_carve_2d(arena, memory.stream, n, h);
    a->z = arena_carve_2d(arena, memory.dtype, n, h);
    a->mean_out = arena_carve_1d(arena, vector, n);
    a->rstd_out = arena_carve_1d(arena, vector, n);
    a->dz = memory.kept ? arena_carve_2d(arena, memory.dtype, n, h) : NULL_TENSOR;
    word_head_carve(&a->head, arena,
                    (struct word_head_room){.dtype = memory.dtype,
                                            .n_rows = n,
                                            .vocab_rows = v,
                                            .n_slices = a->n_slices,
                                            .whole_logits = memory.whole_logits});
}

static void carve_scratch(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                          const struct batch *sizes)
{
    struct gpt_acts *a = acts;
    (void)m;
    layer_scratch_carve(&a->scratch, arena, &a->form, layer_memory(memory, sizes));
}

static tensor output(const void *acts, int64_t layer)
{
    const struct gpt_acts *a = acts;
    return layer == MODEL_INPUT_LAYER ? a->in : a->layers[layer].out;
}

/* ---- memory that outlives batches ---- */

static void carve_weights(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                          enum fp8_factors fp8)
{
    struct gpt_acts *a = acts;
    CHECK(fp8 == FP8_NONE, "a decoder in fp8");
    (void)layer;
    if (tensor_is_null(a->slopes) && gpt_of(m)->config.alibi) { /* carved with the first layer that is here */
        a->slopes = arena_carve_1d(arena, DTYPE_F32, a->form.n_heads);
    }
}

static void carve_cache(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        enum dtype dtype, int64_t n_pages)
{
    struct gpt_acts *a = acts;
    (void)m;
    self_attention_carve_cache(&a->layers[layer].attention, arena, &a->form, dtype, n_pages);
}

static void round_weights(const struct model_pass *p, int64_t layer)
{
    (void)p, (void)layer; /* nothing is rounded to fp8 */
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

static void fill_constants(const struct model *m, void *acts, struct exec *x)
{
    const struct gpt_acts *a = acts;
    for (int64_t i = 0; i < a->form.n_heads && !tensor_is_null(a->slopes); i++) {
        x->ops->fill(x, tensor_slice(a->slopes, i, 1), (double)slope_of(a->form.first_head + i, m->n_heads));
    }
}

/* ---- equations ---- */

static struct layer_call call_of(const struct model_pass *p, int64_t layer)
{
    return (struct layer_call){.form = &((const struct gpt_acts *)p->acts)->form,
                               .stream = p->stream,
                               .layer = layer,
                               .alibi_slopes = ((const struct gpt_acts *)p->acts)->slopes,
                               .training = p->training,
                               .histories = NULL_TENSOR,
                               .adds = p->adds};
}

/* Dropout site far above those of any layer. */
static const uint32_t SITE_EMBEDDINGS = 0xFFFF0000U;

static struct dropout embedding_dropout(const struct model_pass *p)
{
    double probability = gpt_of(p->model)->config.embedding_dropout;
    return (struct dropout){.p = p->training ? probability : 0.0, .site = SITE_EMBEDDINGS};
}

/* words = E[id] */
static void look_up_words(const struct model_pass *p, tensor words)
{
    const struct gpt_acts *a = p->acts;
    const struct gpt_weights *w = p->weights;
    tensor all = stream_room(p->x, p->stream, words, a->scratch.branch);
    word_table_look_up(p->x, p->stream, all, w->word, p->model->vocab_size);
    stream_keep_own(p->x, p->stream, words, all);
}

static void input_forward(const struct model_pass *p)
{
    const struct gpt_acts *a = p->acts;
    const struct gpt_weights *w = p->weights;
    const struct ops *op = p->x->ops;
    struct dropout drop = embedding_dropout(p);
    const tensor branch = stream_own(p->x, p->stream, a->scratch.branch);
    exec_enter(p->x, "embeddings", -1);
    if (gpt_of(p->model)->config.alibi) {
        /* x = LN(E[id]) */
        look_up_words(p, a->words);
        op->layernorm(p->x, branch, a->mean_in, a->rstd_in, a->words, w->norm_in.gamma, w->norm_in.beta,
                      gpt_of(p->model)->form.norm_eps);
        op->cast(p->x, a->in, branch);
        return;
    }
    /* x = dropout(E[id] + P[position]) */
    look_up_words(p, branch);
    op->cast(p->x, a->in, branch);
    op->gather_rows(p->x, branch, w->position, stream_own(p->x, p->stream, p->stream->positions));
    op->residual_add(p->x, a->in, a->in, branch);
    if (drop.p > 0) {
        op->dropout(p->x, a->in, a->in, stream_own(p->x, p->stream, p->stream->row_keys), drop);
    }
}

static void input_backward(const struct model_pass *p, tensor dx)
{
    const struct gpt_acts *a = p->acts;
    const struct gpt_weights *w = p->weights, *g = p->grads;
    const struct ops *op = p->x->ops;
    struct dropout drop = embedding_dropout(p);
    exec_enter(p->x, "embeddings", -1);
    if (gpt_of(p->model)->config.alibi) {
        /* x = LN(E[id]) */
        tensor d = stream_narrow(p->x, stream_own(p->x, p->stream, a->scratch.branch), dx);
        op->layernorm_backward(p->x, d, g->norm_in.gamma, g->norm_in.beta, d, a->words, a->mean_in,
                               a->rstd_in, w->norm_in.gamma);
        d = stream_gather(p->x, p->stream, d, a->scratch.whole);
        word_table_add_gradients(p->x, g->word, d, p->stream->ids, p->model->vocab_size);
        return;
    }
    /* x = dropout(E[id] + P[position]) */
    if (drop.p > 0) {
        op->dropout(p->x, dx, dx, stream_own(p->x, p->stream, p->stream->row_keys), drop);
    }
    dx = stream_gather(p->x, p->stream, dx, a->scratch.whole);
    op->scatter_add_rows(p->x, g->position, dx, p->stream->positions);
    word_table_add_gradients(p->x, g->word, dx, p->stream->ids, p->model->vocab_size);
}

static void layer_forward(const struct model_pass *p, int64_t layer)
{
    const struct gpt_acts *a = p->acts;
    const struct gpt_weights *w = p->weights;
    struct layer_call call = call_of(p, layer);
    gpt_layer_forward(p->x, &a->layers[layer], &a->scratch, output(a, layer - 1), &w->layers[layer], &call);
}

static void layer_backward(const struct model_pass *p, int64_t layer, tensor dx)
{
    const struct gpt_acts *a = p->acts;
    const struct gpt_weights *w = p->weights, *g = p->grads;
    struct layer_call call = call_of(p, layer);
    gpt_layer_backward(p->x, dx, &g->layers[layer], &a->scratch, &a->layers[layer], output(a, layer - 1),
                       &w->layers[layer], &call);
}

/* z = LN_f(y) of the rows that are read; logits = z E^T */
static struct word_head head_of(const struct model_pass *p)
{
    const struct gpt_acts *a = p->acts;
    const struct gpt_weights *w = p->weights;
    exec_enter(p->x, "next-token head", -1);
    tensor y = stream_gather(p->x, p->stream, output(a, p->model->n_layers - 1), a->scratch.whole);
    p->x->ops->gather_rows(p->x, a->read, y, p->stream->fields[TEXT_MASKED_ROWS]);
    p->x->ops->layernorm(p->x, a->z, a->mean_out, a->rstd_out, a->read, w->norm_out.gamma, w->norm_out.beta,
                         gpt_of(p->model)->form.norm_eps);
    return (struct word_head){.rows = a->z,
                              .word = w->word,
                              .labels = p->stream->fields[TEXT_MASKED_LABELS],
                              .scale = tensor_slice(p->loss_scales, 0, 1),
                              .n_words = p->model->n_words};
}

static void heads_forward(const struct model_pass *p)
{
    struct word_head h = head_of(p);
    word_head_forward(p->x, &((const struct gpt_acts *)p->acts)->head, &h);
}

static void heads_measure(const struct model_pass *p, tensor sums)
{
    struct word_head h = head_of(p);
    word_head_measure(p->x, sums, &((const struct gpt_acts *)p->acts)->head, &h);
}

static void heads_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    const struct gpt_acts *a = p->acts;
    const struct gpt_weights *w = p->weights, *g = p->grads;
    const struct ops *op = p->x->ops;
    struct word_head h = head_of(p);
    struct word_head_gradients gradients = {a->dz, g->word, NULL_TENSOR};
    word_head_learn(p->x, sums, &gradients, &a->head, &h);
    op->layernorm_backward(p->x, a->dz, g->norm_out.gamma, g->norm_out.beta, a->dz, a->read, a->mean_out,
                           a->rstd_out, w->norm_out.gamma);
    tensor dy = stream_room(p->x, p->stream, dx, a->scratch.whole);
    op->fill(p->x, dy, 0);
    op->scatter_add_rows(p->x, dy, a->dz, p->stream->fields[TEXT_MASKED_ROWS]);
    stream_keep_own(p->x, p->stream, dx, dy);
}

/* ---- the table ---- */

static void visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                  void *context)
{
    const struct gpt_acts *a = acts;
    char path[MODEL_MODULE_BYTES];
    if (layer == MODEL_INPUT_LAYER) {
        visitor(context, "embeddings", "transformer.drop", BATCH_OF_TOKENS, a->in);
    } else if (layer < m->n_layers) {
        const struct gpt_layer_acts *l = &a->layers[layer];
        snprintf(path, sizeof path, "transformer.h.%lld", (long long)layer);
        visitor(context, "query, key, value", NULL, BATCH_OF_TOKENS, l->attention.qkv);
        visitor(context, "attention", NULL, BATCH_OF_TOKENS, l->attention.heads);
        visitor(context, "sum behind attention", NULL, BATCH_OF_TOKENS, l->norm_2.sum);
        visitor(context, "activation", NULL, BATCH_OF_TOKENS, l->ff.act);
        visitor(context, "output", path, BATCH_OF_TOKENS, l->out);
    } else {
        bool whole = !tensor_is_null(a->head.all_logits) && a->head.all_logits.dims[0] == a->z.dims[0];
        visitor(context, "final norm", "transformer.ln_f", BATCH_OF_LABELS, a->z);
        visitor(context, "logits", "lm_head", BATCH_OF_LABELS, whole ? a->head.all_logits : NULL_TENSOR);
    }
}

static void visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                            model_gradient_visitor *visitor, void *context)
{
    char path[MODEL_MODULE_BYTES];
    (void)acts;
    if (layer >= 0 && layer < m->n_layers) {
        snprintf(path, sizeof path, "transformer.h.%lld", (long long)layer);
        visitor(context, path, BATCH_OF_TOKENS, true, dx);
    }
}

static tensor head_output(const void *acts, enum model_output output)
{
    const struct gpt_acts *a = acts;
    return output == MODEL_WORD_LOGITS    ? a->head.all_logits
           : output == MODEL_WORD_LOSSES  ? a->head.loss
           : output == MODEL_WORD_CORRECT ? a->head.correct
                                          : NULL_TENSOR;
}

static const void *config(const struct model *m)
{
    return &gpt_of(m)->config;
}

static json_t *to_json(const struct model *m)
{
    const struct gpt_config *c = &gpt_of(m)->config;
    return c->alibi ? bloom_config_to_json(c) : gpt2_config_to_json(c);
}

#define GPT_TYPE(name_)                                                                                      \
    {                                                                                                        \
        .name = name_, .in_slices = true, .divides_rows = true, .takes_int8 = true, .config = config,        \
        .to_json = to_json, .declare = declare, .create_weights = create_weights,                            \
        .destroy_weights = destroy_weights, .create_acts = create_acts, .destroy_acts = destroy_acts,        \
        .carve_weights = carve_weights, .carve_cache = carve_cache, .round_weights = round_weights,          \
        .fill_constants = fill_constants, .carve_layer = carve_layer, .share_layer = share_layer,            \
        .carve_output = carve_output, .carve_heads = carve_heads, .carve_scratch = carve_scratch,            \
        .output = output, .input_forward = input_forward, .layer_forward = layer_forward,                    \
        .heads_forward = heads_forward, .heads_measure = heads_measure, .heads_learn = heads_learn,          \
        .layer_backward = layer_backward, .input_backward = input_backward, .visit = visit,                  \
        .visit_gradients = visit_gradients, .head_output = head_output,                                      \
    }

static const struct model_type gpt2_type = GPT_TYPE("gpt2"), bloom_type = GPT_TYPE("bloom");

static struct status create(struct model **model, const struct gpt_config *c, const struct model_type *type,
                            const char *tied)
{
    struct gpt *t = malloc(sizeof *t);
    FAIL_IF(t == NULL, STATUS_MEMORY, "out of memory for a model");
    *t = (struct gpt){
        .model = {.type = type,
                  .n_layers = c->n_layers,
                  .hidden_size = c->hidden_size,
                  .n_heads = c->n_heads,
                  .max_length = c->n_positions,
                  .feed_forward_size = c->feed_forward_size,
                  .task = MODEL_TASK_CAUSAL_LM,
                  .vocab_size = c->vocab_size,
                  .n_words = c->n_words > 0 ? c->n_words : c->vocab_size,
                  .layout = text_batch_layout,
                  .tied = tied},
        .config = *c,
        .form = {.n_layers = c->n_layers,
                 .hidden = c->hidden_size,
                 .head_size = c->hidden_size / c->n_heads,
                 .n_heads = c->n_heads,
                 .feed_forward = c->feed_forward_size,
                 .dropout = c->hidden_dropout,
                 .attention_dropout = c->attention_dropout,
                 .norm_eps = c->norm_eps,
                 .gelu = c->gelu,
                 .is_causal = true},
    };
    model_add_measure(&t->model, MEASURE_NEXT_TOKEN, TEXT_MASKED_LABELS);
    *model = &t->model;
    return status_ok();
}

struct status gpt2_model_create(struct model **model, const void *config, enum model_task task)
{
    (void)task;
    return create(model, config, &gpt2_type, "transformer.wte.weight");
}

struct status bloom_model_create(struct model **model, const void *config, enum model_task task)
{
    (void)task;
    return create(model, config, &bloom_type, "transformer.word_embeddings.weight");
}
