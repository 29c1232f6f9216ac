#include "nn/decoder/decoder_config.h"

#include "core/integers.h"
#include "nn/block_model.h"
#include "nn/model_measures.h"
#include "nn/text_batch_layout.h"
#include "nn/word_head.h"
#include "nn/word_table.h"

#include <stdlib.h>

struct decoder_names;

struct decoder {
    struct block_model blocks; /* first */
    struct decoder_config config;
    const struct decoder_names *names;
};

static const struct decoder *decoder_of(const struct model *m)
{
    return (const struct decoder *)m;
}

/* ---- weights ---- */

struct decoder_weights {
    struct block_weight_table table; /* first */
    tensor word;                     /* [V, H] E */
    tensor decoder;                  /* [V, H] where it is not E */
    tensor position;                 /* [P, H] GPT-2's */
    struct norm_weights norm_in;     /* BLOOM's */
    struct norm_weights norm_out;    /* LN_f, of the form's norm */
};

#define WEIGHTS struct decoder_weights

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

static const struct weight_row llama_input_rows[] = {
    WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "embed_tokens.weight"),
};

static const struct weight_row llama_output_rows[] = {
    WEIGHT_VECTOR(norm_out.gamma, HIDDEN, ONE, WHOLE, "model.norm.weight"),
};

static const struct weight_row llama_own_output_rows[] = {
    WEIGHT_VECTOR(norm_out.gamma, HIDDEN, ONE, WHOLE, "model.norm.weight"),
    WEIGHT_MATRIX(decoder, VOCAB, HIDDEN, NORMAL, BY_WORD, "lm_head.weight"),
};

#undef WEIGHTS
#define WEIGHTS struct block_weights

/* Names of a layer's weights as Hugging Face has them, but for tensors that its files hold in another form:
 * query, key and value are one tensor there, and GPT-2's matrices are transposed
 * (model/decoder/gpt_family.c). */
static const struct weight_row gpt2_layer_rows[] = {
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, OF_ROWS, "ln_1.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, OF_ROWS, "ln_1.bias"),
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "attn.query.weight", "attn.key.weight",
                  "attn.value.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "attn.query.bias", "attn.key.bias",
                "attn.value.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, RESIDUAL, BY_COL, "attn.out.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, OF_ROWS, "attn.out.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "ln_2.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, OF_ROWS, "ln_2.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.in.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "mlp.in.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.out.weight"),
    WEIGHT_BIAS(ff.b_2, HIDDEN, ZERO, WHOLE, "mlp.out.bias"),
};

static const struct weight_row bloom_layer_rows[] = {
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, OF_ROWS, "input_layernorm.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, OF_ROWS, "input_layernorm.bias"),
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "self_attention.query.weight",
                  "self_attention.key.weight", "self_attention.value.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "self_attention.query.bias",
                "self_attention.key.bias", "self_attention.value.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, RESIDUAL, BY_COL, "self_attention.dense.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, OF_ROWS, "self_attention.dense.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "post_attention_layernorm.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, OF_ROWS, "post_attention_layernorm.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.dense_h_to_4h.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "mlp.dense_h_to_4h.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.dense_4h_to_h.weight"),
    WEIGHT_BIAS(ff.b_2, HIDDEN, ZERO, WHOLE, "mlp.dense_4h_to_h.bias"),
};
/* All biases but that of query, key and value are null. */
#define LLAMA_ROWS_IN                                                                                        \
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, OF_ROWS, "input_layernorm.weight"),                             \
        WEIGHT_QKV(attention.w_qkv, "self_attn.q_proj.weight", "self_attn.k_proj.weight",                    \
                   "self_attn.v_proj.weight")
#define LLAMA_QKV_BIAS                                                                                       \
    WEIGHT_QKV_BIAS(attention.b_qkv, "self_attn.q_proj.bias", "self_attn.k_proj.bias",                       \
                    "self_attn.v_proj.bias")
#define LLAMA_ROWS_OUT                                                                                       \
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HEADS, RESIDUAL, BY_COL, "self_attn.o_proj.weight"),                \
        WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "post_attention_layernorm.weight"),                \
        WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.gate_proj.weight",                  \
                      "mlp.up_proj.weight"),                                                                 \
        WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.down_proj.weight")

static const struct weight_row llama_layer_rows[] = {LLAMA_ROWS_IN, LLAMA_ROWS_OUT};
static const struct weight_row qwen2_layer_rows[] = {LLAMA_ROWS_IN, LLAMA_QKV_BIAS, LLAMA_ROWS_OUT};

_Static_assert(sizeof gpt2_layer_rows / sizeof gpt2_layer_rows[0] == BLOCK_N_ROWS &&
                   sizeof bloom_layer_rows / sizeof bloom_layer_rows[0] == BLOCK_N_ROWS,
               "a row for every field");

/* What a family calls its weights and modules. */
struct decoder_names {
    struct block_part input, layers, output; /* the output's layer is that of the heads, set with the sizes */
    const char *word;                        /* the parameter E */
    const char *input_module, *norm_module;
};

#define PART(rows_, prefix_, layer_)                                                                         \
    {                                                                                                        \
        .rows = rows_, .n_rows = sizeof rows_ / sizeof rows_[0], .prefix = prefix_, .layer = layer_          \
    }

static const struct decoder_names gpt2_names = {PART(gpt2_input_rows, "transformer.", MODEL_INPUT_LAYER),
                                                PART(gpt2_layer_rows, "transformer.h.", BLOCK_EVERY_LAYER),
                                                PART(output_rows, "transformer.", 0),
                                                "transformer.wte.weight",
                                                "transformer.drop",
                                                "transformer.ln_f"},
                                  bloom_names = {PART(bloom_input_rows, "transformer.", MODEL_INPUT_LAYER),
                                                 PART(bloom_layer_rows, "transformer.h.", BLOCK_EVERY_LAYER),
                                                 PART(output_rows, "transformer.", 0),
                                                 "transformer.word_embeddings.weight",
                                                 "transformer.word_embeddings_layernorm",
                                                 "transformer.ln_f"};

/* Names of Llama's relatives: without or with a bias of query, key and value, with E or a decoder of its
 * own. */
#define LLAMA_NAMES(layer_rows, output_rows)                                                                 \
    {                                                                                                        \
        PART(llama_input_rows, "model.", MODEL_INPUT_LAYER),                                                 \
            PART(layer_rows, "model.layers.", BLOCK_EVERY_LAYER), PART(output_rows, "", 0),                  \
            "model.embed_tokens.weight", "model.embed_tokens", "model.norm"                                  \
    }
static const struct decoder_names llama_names[2][2] = {
    {LLAMA_NAMES(llama_layer_rows, llama_output_rows), LLAMA_NAMES(llama_layer_rows, llama_own_output_rows)},
    {LLAMA_NAMES(qwen2_layer_rows, llama_output_rows), LLAMA_NAMES(qwen2_layer_rows, llama_own_output_rows)}};

/* The rows of the table in memory are a multiple, so that products of the head are aligned. */
enum { VOCAB_GRAIN = 8 };

/* ---- activations ---- */

struct decoder_acts {
    struct block_stack stack;               /* first; R as there */
    tensor words, mean_in, rstd_in;         /* [R, H], [R], [R] E[id] and its norm, BLOOM's */
    tensor read, z, mean_out, rstd_out, dz; /* [M, H], [M, H], [M], [M], [M, H] the rows that are read */
    struct word_head_acts head;
};

static void carve_input(const struct block_model *m, void *acts, struct arena *arena,
                        struct layer_memory memory)
{
    struct decoder_acts *a = acts;
    enum dtype vector = dtype_of_vectors(memory.dtype);
    int64_t r = layer_own_rows(memory), h = m->model.hidden_size;
    a->stack.in = arena_carve_2d(arena, memory.stream, r, h);
    if (decoder_of(&m->model)->config.embedding_norm) {
        a->words = arena_carve_2d(arena, memory.dtype, r, h);
        a->mean_in = arena_carve_1d(arena, vector, r);
        a->rstd_in = arena_carve_1d(arena, vector, r);
    }
}

static void carve_heads(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                        const struct batch *sizes)
{
    struct decoder_acts *a = acts;
    struct norm_acts norm;
    int64_t n = sizes->n_labels, h = m->hidden_size;
    int64_t v = weights_vocab_rows(decoder_of(m)->blocks.sizes.padded[DIM_VOCAB], a->stack.n_slices);
    a->read = arena_carve_2d(arena, memory.stream, n, h);
    a->z = arena_carve_2d(arena, memory.dtype, n, h);
    norm_carve_statistics(&norm, arena, a->stack.form.norm, memory.dtype, n);
    a->mean_out = norm.mean, a->rstd_out = norm.rstd;
    a->dz = memory.kept ? arena_carve_2d(arena, memory.dtype, n, h) : NULL_TENSOR;
    word_head_carve(&a->head, arena,
                    (struct word_head_room){.dtype = memory.dtype,
                                            .n_rows = n,
                                            .vocab_rows = v,
                                            .n_slices = a->stack.n_slices,
                                            .whole_logits = memory.whole_logits});
}

/* ---- equations ---- */

/* Dropout site far above those of any layer. */
static const uint32_t SITE_EMBEDDINGS = 0xFFFF0000U;

static struct dropout embedding_dropout(const struct model_pass *p)
{
    double probability = decoder_of(p->model)->config.embedding_dropout;
    return (struct dropout){.p = p->training ? probability : 0.0, .site = SITE_EMBEDDINGS};
}

/* words = E[id] */
static void look_up_words(const struct model_pass *p, tensor words)
{
    const struct decoder_acts *a = p->acts;
    const struct decoder_weights *w = p->weights;
    tensor all = stream_room(p->x, p->stream, words, a->stack.scratch.branch);
    word_table_look_up(p->x, p->stream, all, w->word, p->model->vocab_size);
    stream_keep_own(p->x, p->stream, words, all);
}

static void input_forward(const struct model_pass *p)
{
    const struct decoder_acts *a = p->acts;
    const struct decoder_weights *w = p->weights;
    const struct ops *op = p->x->ops;
    struct dropout drop = embedding_dropout(p);
    const tensor branch = stream_own(p->x, p->stream, a->stack.scratch.branch);
    exec_enter(p->x, "embeddings", -1);
    if (decoder_of(p->model)->config.embedding_norm) {
        /* x = LN(E[id]) */
        look_up_words(p, a->words);
        op->layernorm(p->x, branch, a->mean_in, a->rstd_in, a->words, w->norm_in.gamma, w->norm_in.beta,
                      decoder_of(p->model)->config.norm_eps);
        op->cast(p->x, a->stack.in, branch);
        return;
    }
    /* x = E[id] */
    look_up_words(p, branch);
    op->cast(p->x, a->stack.in, branch);
    if (tensor_is_null(w->position)) {
        return;
    }
    /* x = dropout(x + P[position]) */
    op->gather_rows(p->x, branch, w->position, stream_own(p->x, p->stream, p->stream->positions));
    op->residual_add(p->x, a->stack.in, a->stack.in, branch);
    if (drop.p > 0) {
        op->dropout(p->x, a->stack.in, a->stack.in, stream_own(p->x, p->stream, p->stream->row_keys), drop);
    }
}

static void input_backward(const struct model_pass *p, tensor dx)
{
    const struct decoder_acts *a = p->acts;
    const struct decoder_weights *w = p->weights, *g = p->grads;
    const struct ops *op = p->x->ops;
    struct dropout drop = embedding_dropout(p);
    exec_enter(p->x, "embeddings", -1);
    if (decoder_of(p->model)->config.embedding_norm) {
        /* x = LN(E[id]) */
        tensor d = stream_narrow(p->x, stream_own(p->x, p->stream, a->stack.scratch.branch), dx);
        op->layernorm_backward(p->x, d, g->norm_in.gamma, g->norm_in.beta, d, a->words, a->mean_in,
                               a->rstd_in, w->norm_in.gamma);
        d = stream_gather(p->x, p->stream, d, a->stack.scratch.whole);
        word_table_add_gradients(p->x, g->word, d, p->stream->ids, p->model->vocab_size);
        return;
    }
    /* x = dropout(E[id] + P[position]), or E[id] */
    if (drop.p > 0) {
        op->dropout(p->x, dx, dx, stream_own(p->x, p->stream, p->stream->row_keys), drop);
    }
    dx = stream_gather(p->x, p->stream, dx, a->stack.scratch.whole);
    if (!tensor_is_null(g->position)) {
        op->scatter_add_rows(p->x, g->position, dx, p->stream->positions);
    }
    word_table_add_gradients(p->x, g->word, dx, p->stream->ids, p->model->vocab_size);
}

/* The matrix of the last product, or its gradient. */
static tensor decoder_matrix(const struct model_pass *p, const struct decoder_weights *w)
{
    return decoder_of(p->model)->config.own_decoder ? w->decoder : w->word;
}

/* z = LN_f(y) of the rows that are read; logits = z E^T */
static struct word_head head_of(const struct model_pass *p)
{
    const struct decoder_acts *a = p->acts;
    const struct decoder_weights *w = p->weights;
    exec_enter(p->x, "next-token head", -1);
    tensor y =
        stream_gather(p->x, p->stream, block_model_output(a, p->model->n_layers - 1), a->stack.scratch.whole);
    p->x->ops->gather_rows(p->x, a->read, y, p->stream->fields[TEXT_MASKED_ROWS]);
    p->x->ops->layernorm(p->x, a->z, a->mean_out, a->rstd_out, a->read, w->norm_out.gamma, w->norm_out.beta,
                         decoder_of(p->model)->config.norm_eps);
    return (struct word_head){.rows = a->z,
                              .word = decoder_matrix(p, w),
                              .labels = p->stream->fields[TEXT_MASKED_LABELS],
                              .scale = tensor_slice(p->loss_scales, 0, 1),
                              .n_words = p->model->n_words};
}

static void heads_forward(const struct model_pass *p)
{
    struct word_head h = head_of(p);
    word_head_forward(p->x, &((const struct decoder_acts *)p->acts)->head, &h);
}

static void heads_measure(const struct model_pass *p, tensor sums)
{
    struct word_head h = head_of(p);
    word_head_measure(p->x, sums, &((const struct decoder_acts *)p->acts)->head, &h);
}

static void heads_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    const struct decoder_acts *a = p->acts;
    const struct decoder_weights *w = p->weights, *g = p->grads;
    const struct ops *op = p->x->ops;
    struct word_head h = head_of(p);
    struct word_head_gradients gradients = {a->dz, decoder_matrix(p, g), NULL_TENSOR};
    word_head_learn(p->x, sums, &gradients, &a->head, &h);
    op->layernorm_backward(p->x, a->dz, g->norm_out.gamma, g->norm_out.beta, a->dz, a->read, a->mean_out,
                           a->rstd_out, w->norm_out.gamma);
    tensor dy = stream_room(p->x, p->stream, dx, a->stack.scratch.whole);
    op->fill(p->x, dy, 0);
    op->scatter_add_rows(p->x, dy, a->dz, p->stream->fields[TEXT_MASKED_ROWS]);
    stream_keep_own(p->x, p->stream, dx, dy);
}

/* ---- the table ---- */

static void visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                  void *context)
{
    const struct decoder_acts *a = acts;
    const struct decoder_names *names = decoder_of(m)->names;
    char path[MODEL_MODULE_BYTES];
    if (layer == MODEL_INPUT_LAYER) {
        visitor(context, "embeddings", names->input_module, BATCH_OF_TOKENS, a->stack.in);
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
        visitor(context, "final norm", names->norm_module, BATCH_OF_LABELS, a->z);
        visitor(context, "logits", "lm_head", BATCH_OF_LABELS, whole ? a->head.all_logits : NULL_TENSOR);
    }
}

static void visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                            model_gradient_visitor *visitor, void *context)
{
    char path[MODEL_MODULE_BYTES];
    (void)acts;
    if (layer >= 0 && layer < m->n_layers) {
        block_model_path(path, m, layer);
        visitor(context, path, BATCH_OF_TOKENS, true, dx);
    }
}

static tensor head_output(const void *acts, enum model_output output)
{
    const struct decoder_acts *a = acts;
    return output == MODEL_WORD_LOGITS    ? a->head.all_logits
           : output == MODEL_WORD_LOSSES  ? a->head.loss
           : output == MODEL_WORD_CORRECT ? a->head.correct
                                          : NULL_TENSOR;
}

static const void *config(const struct model *m)
{
    return &decoder_of(m)->config;
}

static json_t *gpt2_to_json(const struct model *m)
{
    return gpt2_config_to_json(&decoder_of(m)->config);
}

static json_t *bloom_to_json(const struct model *m)
{
    return bloom_config_to_json(&decoder_of(m)->config);
}

static json_t *llama_to_json(const struct model *m)
{
    return llama_config_to_json(&decoder_of(m)->config);
}

#define DECODER_TYPE(name_)                                                                                  \
    {                                                                                                        \
        .name = #name_, .in_slices = true, .divides_rows = true, .int8 = MODEL_INT8_ALL, .config = config,   \
        .to_json = name_##_to_json, BLOCK_MODEL_FUNCTIONS, .carve_cache = block_model_carve_cache,           \
        .carve_heads = carve_heads, .input_forward = input_forward, .heads_forward = heads_forward,          \
        .heads_measure = heads_measure, .heads_learn = heads_learn, .input_backward = input_backward,        \
        .visit = visit, .visit_gradients = visit_gradients, .head_output = head_output,                      \
    }

static const struct model_type gpt2_type = DECODER_TYPE(gpt2), bloom_type = DECODER_TYPE(bloom),
                               llama_type = DECODER_TYPE(llama);

static struct status create(struct model **model, const struct decoder_config *c,
                            const struct model_type *type, const struct decoder_names *names)
{
    struct decoder *t = malloc(sizeof *t);
    FAIL_IF(t == NULL, STATUS_MEMORY, "out of memory for a model");
    *t = (struct decoder){
        .blocks = {.model = {.type = type,
                             .n_layers = c->n_layers,
                             .hidden_size = c->hidden_size,
                             .n_heads = c->n_heads,
                             .max_length = decoder_config_max_length(c),
                             .feed_forward_size = c->feed_forward_size,
                             .task = MODEL_TASK_CAUSAL_LM,
                             .vocab_size = c->vocab_size,
                             .n_words = c->n_words > 0 ? c->n_words : c->vocab_size,
                             .layout = text_batch_layout,
                             .tied = c->own_decoder ? NULL : names->word},
                   .form = {.n_layers = c->n_layers,
                            .hidden = c->hidden_size,
                            .head_size = decoder_config_head_size(c),
                            .n_heads = c->n_heads,
                            .n_kv_heads = c->n_kv_heads,
                            .feed_forward = c->feed_forward_size,
                            .dropout = c->hidden_dropout,
                            .attention_dropout = c->attention_dropout,
                            .norm_eps = c->norm_eps,
                            .activation = c->activation,
                            .norm = c->norm,
                            .positions = c->positions,
                            .is_causal = true},
                   .others = c->unturned,
                   .wiring = &block_pre,
                   .rotary = c->rotary,
                   .sizes = {.real[DIM_POSITIONS] = c->n_positions,
                             .initializer_range = c->initializer_range},
                   .weight_bytes = sizeof(struct decoder_weights),
                   .act_bytes = sizeof(struct decoder_acts),
                   .carve_input = carve_input},
        .config = *c,
        .names = names,
    };
    t->blocks.other = t->blocks.form;
    t->blocks.other.positions = LAYER_POSITIONS_NONE;
    block_model_size(&t->blocks, int_round_up(c->vocab_size, VOCAB_GRAIN));
    model_add_measure(&t->blocks.model, MEASURE_NEXT_TOKEN, TEXT_MASKED_LABELS);
    struct block_part output = names->output;
    output.layer = c->n_layers;
    block_model_add(&t->blocks, names->input);
    block_model_add(&t->blocks, names->layers);
    block_model_add(&t->blocks, output);
    *model = &t->blocks.model;
    return status_ok();
}

struct status gpt2_model_create(struct model **model, const void *config, enum model_task task)
{
    (void)task;
    return create(model, config, &gpt2_type, &gpt2_names);
}

struct status bloom_model_create(struct model **model, const void *config, enum model_task task)
{
    (void)task;
    return create(model, config, &bloom_type, &bloom_names);
}

struct status llama_model_create(struct model **model, const void *config, enum model_task task)
{
    const struct decoder_config *c = config;
    (void)task;
    return create(model, c, &llama_type, &llama_names[c->qkv_bias][c->own_decoder]);
}
