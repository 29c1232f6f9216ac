#include "toy_model.h"

#include "nn/feed_forward.h"
#include "nn/text_batch_layout.h"
#include "nn/weights.h"
#include "nn/word_head.h"

#include <stdlib.h>

struct toy {
    struct model model; /* first */
    struct toy_config config;
    struct layer_form form;
};

/* ---- 1. weights ---- */

struct toy_weights {
    tensor word; /* [V, H] */
    struct feed_forward_weights ff;
    struct norm_weights norm;
};

#define WEIGHTS struct toy_weights

static const struct weight_row input_rows[] = {
    WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "word_embeddings.weight"),
};

static const struct weight_row layer_rows[] = {
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "intermediate.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "intermediate.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, NORMAL, BY_COL, "output.weight"),
    WEIGHT_VECTOR(ff.b_2, HIDDEN, ZERO, WHOLE, "output.bias"),
    WEIGHT_VECTOR(norm.gamma, HIDDEN, ONE, WHOLE, "norm.weight"),
    WEIGHT_VECTOR(norm.beta, HIDDEN, ZERO, WHOLE, "norm.bias"),
};

enum { N_INPUT_ROWS = 1, N_LAYER_ROWS = sizeof layer_rows / sizeof layer_rows[0] };

static const char INPUT_PREFIX[] = "toy.embeddings.", LAYER_PREFIX[] = "toy.layer.0.";

static const struct toy *toy_of(const struct model *m)
{
    return (const struct toy *)m;
}

static struct weight_sizes sizes_of(const struct toy_config *c)
{
    struct weight_sizes s = {.real = {[DIM_ONE] = 1,
                                      [DIM_BIAS] = 1,
                                      [DIM_HIDDEN] = c->hidden_size,
                                      [DIM_FEED_FORWARD] = c->intermediate_size,
                                      [DIM_VOCAB] = c->vocab_size},
                             .initializer_range = 0.1};
    for (int d = 0; d < DIM_COUNT; d++) {
        s.padded[d] = s.real[d];
    }
    return s;
}

static struct status declare(const struct model *m, struct param_table *table)
{
    struct weight_declaration d = {table, sizes_of(&toy_of(m)->config)};
    weights_declare(&d, NULL, INPUT_PREFIX, MODEL_INPUT_LAYER, input_rows, N_INPUT_ROWS);
    weights_declare(&d, NULL, LAYER_PREFIX, 0, layer_rows, N_LAYER_ROWS);
    return param_table_status(table);
}

static struct status create_weights(const struct model *m, void **weights, const struct param_table *table,
                                    tensor matrices, tensor vectors, tensor biases)
{
    struct weight_view v = {table, sizes_of(&toy_of(m)->config), matrices, vectors, biases};
    struct toy_weights *w = *weights = calloc(1, sizeof *w);
    if (w == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the views of a model");
    }
    weights_view(&v, w, INPUT_PREFIX, MODEL_INPUT_LAYER, input_rows, N_INPUT_ROWS);
    weights_view(&v, w, LAYER_PREFIX, 0, layer_rows, N_LAYER_ROWS);
    return status_ok();
}

/* ---- 2. activations ---- */

struct toy_acts {
    tensor in, out; /* [T, H] of the layer */
    struct feed_forward_acts ff;
    struct norm_acts norm;
    tensor read, dread; /* [M, H] the rows that the head reads, and their gradient */
    struct word_head_acts words;
    struct layer_scratch scratch;
};

static struct status create_acts(const struct model *m, const struct param_part *part, void **acts)
{
    (void)part;
    (void)m;
    *acts = calloc(1, sizeof(struct toy_acts));
    return *acts != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for activations");
}

static struct layer_memory layer_memory(struct model_memory m, const struct batch *sizes)
{
    return (struct layer_memory){m.dtype, m.dtype, m.fp8, sizes->n_tokens, m.kept, m.n_row_parts};
}

static void carve_output(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                         struct model_memory memory, const struct batch *sizes)
{
    struct toy_acts *a = acts;
    tensor *out = layer == MODEL_INPUT_LAYER ? &a->in : &a->out;
    *out = arena_carve_2d(arena, memory.dtype, sizes->n_tokens, m->hidden_size);
}

static void carve_layer(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        struct model_memory memory, const struct batch *sizes)
{
    struct toy_acts *a = acts;
    carve_output(m, acts, layer, arena, memory, sizes);
    if (layer != MODEL_INPUT_LAYER) {
        feed_forward_carve(&a->ff, arena, &toy_of(m)->form, layer_memory(memory, sizes));
        a->norm = (struct norm_acts){0};
        if (memory.kept) {
            norm_carve(&a->norm, arena, &toy_of(m)->form, layer_memory(memory, sizes));
        }
    }
}

static void carve_heads(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                        const struct batch *sizes)
{
    struct toy_acts *a = acts;
    int64_t n = sizes->n_labels, v = m->vocab_size;
    a->read = arena_carve_2d(arena, memory.dtype, n, m->hidden_size);
    a->dread = arena_carve_2d(arena, memory.dtype, n, m->hidden_size);
    word_head_carve(
        &a->words, arena,
        (struct word_head_room){
            .dtype = memory.dtype, .n_rows = n, .vocab_rows = v, .whole_logits = memory.whole_logits});
}

static void carve_scratch(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                          const struct batch *sizes)
{
    layer_scratch_carve(&((struct toy_acts *)acts)->scratch, arena, &toy_of(m)->form,
                        layer_memory(memory, sizes));
}

/* With one layer there is nothing to share, and no product is rounded ahead. */
static void share_layer(void *acts, int64_t layer, int64_t of)
{
    (void)acts, (void)layer, (void)of;
}

static void carve_weights(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                          enum fp8_factors fp8)
{
    (void)m, (void)acts, (void)layer, (void)arena, (void)fp8;
}

static void round_weights(const struct model_pass *p, int64_t layer)
{
    (void)p, (void)layer;
}

static tensor output(const void *acts, int64_t layer)
{
    const struct toy_acts *a = acts;
    return layer == MODEL_INPUT_LAYER ? a->in : a->out;
}

/* ---- 3. equations ---- */

static struct layer_call call_of(const struct model_pass *p)
{
    return (struct layer_call){.form = &toy_of(p->model)->form,
                               .stream = p->stream,
                               .training = p->training,
                               .histories = NULL_TENSOR,
                               .adds = p->adds};
}

static void input_forward(const struct model_pass *p)
{
    const struct toy_acts *a = p->acts;
    const struct toy_weights *w = p->weights;
    exec_enter(p->x, "embeddings", -1);

    /* x = E[id] */
    p->x->ops->gather_rows(p->x, a->in, w->word, p->stream->ids);
}

static void input_backward(const struct model_pass *p, tensor dx)
{
    const struct toy_weights *g = p->grads;
    exec_enter(p->x, "embeddings", -1);

    /* x = E[id] */
    p->x->ops->scatter_add_rows(p->x, g->word, dx, p->stream->ids);
}

static void layer_forward(const struct model_pass *p, int64_t layer)
{
    const struct toy_acts *a = p->acts;
    const struct toy_weights *w = p->weights;
    struct layer_call call = call_of(p);
    exec_enter(p->x, "layer", layer);

    /* y = LN(x + gelu(x W_1^T + b_1) W_2^T + b_2) */
    feed_forward_forward(p->x, &(struct feed_forward){.w = &w->ff, .acts = &a->ff}, a->in, &a->scratch,
                         &call);
    norm_forward(p->x, &(struct norm){&w->norm, NULL, &a->norm, LAYER_FEED_FORWARD_OUT}, a->out,
                 a->scratch.branch, w->ff.b_2, a->in, &call);
}

static void layer_backward(const struct model_pass *p, int64_t layer, tensor dx)
{
    const struct toy_acts *a = p->acts;
    const struct toy_weights *w = p->weights, *g = p->grads;
    struct layer_call call = call_of(p);
    exec_enter(p->x, "layer", layer);

    /* y = LN(x + gelu(x W_1^T + b_1) W_2^T + b_2) */
    norm_backward(p->x, &(struct norm){&w->norm, &g->norm, &a->norm, LAYER_FEED_FORWARD_OUT},
                  (struct gradient){dx, false}, a->scratch.branch, g->ff.b_2, dx, &call);
    feed_forward_backward(p->x, &(struct feed_forward){.w = &w->ff, .g = &g->ff, .acts = &a->ff},
                          (struct gradient){dx, true}, a->scratch.branch, a->in, &a->scratch, &call);
}

/* logits = y E^T, of the rows with a label */
static struct word_head head_of(const struct model_pass *p)
{
    const struct toy_acts *a = p->acts;
    const struct toy_weights *w = p->weights;
    exec_enter(p->x, "next-token head", -1);
    p->x->ops->gather_rows(p->x, a->read, a->out, p->stream->fields[TEXT_MASKED_ROWS]);
    return (struct word_head){.rows = a->read,
                              .word = w->word,
                              .labels = p->stream->fields[TEXT_MASKED_LABELS],
                              .scale = tensor_slice(p->loss_scales, 0, 1),
                              .n_words = p->model->n_words};
}

static void heads_forward(const struct model_pass *p)
{
    struct word_head h = head_of(p);
    word_head_forward(p->x, &((const struct toy_acts *)p->acts)->words, &h);
}

static void heads_measure(const struct model_pass *p, tensor sums)
{
    struct word_head h = head_of(p);
    word_head_measure(p->x, sums, &((const struct toy_acts *)p->acts)->words, &h);
}

static void heads_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    const struct toy_acts *a = p->acts;
    const struct toy_weights *g = p->grads;
    struct word_head h = head_of(p);
    struct word_head_gradients gradients = {a->dread, g->word, NULL_TENSOR};
    word_head_learn(p->x, sums, &gradients, &a->words, &h);
    p->x->ops->fill(p->x, dx, 0);
    p->x->ops->scatter_add_rows(p->x, dx, a->dread, p->stream->fields[TEXT_MASKED_ROWS]);
}

/* ---- 4. the table ---- */

static void visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                  void *context)
{
    const struct toy_acts *a = acts;
    if (layer == MODEL_INPUT_LAYER) {
        visitor(context, "embeddings", "toy.embeddings", BATCH_OF_TOKENS, a->in);
    } else if (layer < m->n_layers) {
        visitor(context, "output of layer 0", "toy.layer.0", BATCH_OF_TOKENS, a->out);
    } else {
        visitor(context, "logits", NULL, BATCH_OF_LABELS, a->words.logits);
    }
}

static void visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                            model_gradient_visitor *visitor, void *context)
{
    (void)acts;
    if (layer < m->n_layers) {
        visitor(context, layer == MODEL_INPUT_LAYER ? "toy.embeddings" : "toy.layer.0", BATCH_OF_TOKENS, true,
                dx);
    }
}

static tensor head_output(const void *acts, enum model_output output)
{
    const struct toy_acts *a = acts;
    return output == MODEL_WORD_LOGITS    ? a->words.logits
           : output == MODEL_WORD_LOSSES  ? a->words.loss
           : output == MODEL_WORD_CORRECT ? a->words.correct
                                          : NULL_TENSOR;
}

static json_t *to_json(const struct model *m)
{
    const struct toy_config *c = &toy_of(m)->config;
    return json_pack("{s:s, s:[s], s:I, s:I, s:I, s:I}", "model_type", "toy", "architectures",
                     "ToyForCausalLM", "vocab_size", (json_int_t)c->vocab_size, "hidden_size",
                     (json_int_t)c->hidden_size, "intermediate_size", (json_int_t)c->intermediate_size,
                     "max_position_embeddings", (json_int_t)c->max_position_embeddings);
}

static const void *config(const struct model *m)
{
    return &toy_of(m)->config;
}

static const struct model_type toy_type = {
    .name = "toy",
    .config = config,
    .to_json = to_json,
    .declare = declare,
    .create_weights = create_weights,
    .destroy_weights = free,
    .create_acts = create_acts,
    .destroy_acts = free,
    .carve_weights = carve_weights,
    .round_weights = round_weights,
    .carve_layer = carve_layer,
    .share_layer = share_layer,
    .carve_output = carve_output,
    .carve_heads = carve_heads,
    .carve_scratch = carve_scratch,
    .output = output,
    .input_forward = input_forward,
    .layer_forward = layer_forward,
    .heads_forward = heads_forward,
    .heads_measure = heads_measure,
    .heads_learn = heads_learn,
    .layer_backward = layer_backward,
    .input_backward = input_backward,
    .visit = visit,
    .visit_gradients = visit_gradients,
    .head_output = head_output,
};

struct status toy_model_create(struct model **model, const void *config, enum model_task task)
{
    const struct toy_config *c = config;
    struct toy *t = malloc(sizeof *t);
    if (t == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a model");
    }
    *t = (struct toy){
        .model = {.type = &toy_type,
                  .n_layers = 1,
                  .hidden_size = c->hidden_size,
                  .max_length = c->max_position_embeddings,
                  .feed_forward_size = c->intermediate_size,
                  .task = task == MODEL_TASK_PRETRAINING ? MODEL_TASK_CAUSAL_LM : task,
                  .vocab_size = c->vocab_size,
                  .n_words = c->n_words > 0 ? c->n_words : c->vocab_size,
                  .layout = text_batch_layout,
                  .tied = "toy.embeddings.word_embeddings.weight",
                  .n_sums = 2,
                  .sums = {{"lm_loss", "LM loss", TEXT_MASKED_LABELS, true},
                           {"lm_accuracy", "LM accuracy", TEXT_MASKED_LABELS, false}}},
        .config = *c,
        .form = {.n_layers = 1,
                 .hidden = c->hidden_size,
                 .feed_forward = c->intermediate_size,
                 .norm_eps = 1e-5},
    };
    *model = &t->model;
    return status_ok();
}
