#include "nn/decoder/decoder_config.h"

#include "core/integers.h"
#include "nn/model_measures.h"
#include "nn/next_token.h"
#include "nn/text_batch_layout.h"
#include "nn/word_table.h"

#include <stdlib.h>

struct decoder {
    struct block_model blocks; /* first */
    struct decoder_config config;
};

static const struct decoder *decoder_of(const struct model *m)
{
    return (const struct decoder *)m;
}

/* ---- weights ---- */

struct decoder_weights {
    struct next_token_weights head; /* first */
    tensor position;                /* [P, H] GPT-2's */
    struct norm_weights norm_in;    /* BLOOM's */
};

#define WEIGHTS struct decoder_weights

static const struct weight_row gpt2_input_rows[] = {
    WEIGHT_MATRIX(head.word, VOCAB, HIDDEN, NORMAL, BY_WORD, "wte.weight"),
    WEIGHT_MATRIX(position, POSITIONS, HIDDEN, NORMAL, WHOLE, "wpe.weight"),
};

static const struct weight_row bloom_input_rows[] = {
    WEIGHT_MATRIX(head.word, VOCAB, HIDDEN, NORMAL, BY_WORD, "word_embeddings.weight"),
    WEIGHT_VECTOR(norm_in.gamma, HIDDEN, ONE, OF_ROWS, "word_embeddings_layernorm.weight"),
    WEIGHT_VECTOR(norm_in.beta, HIDDEN, ZERO, OF_ROWS, "word_embeddings_layernorm.bias"),
};

static const struct weight_row output_rows[] = {
    WEIGHT_VECTOR(head.norm_out.gamma, HIDDEN, ONE, WHOLE, "ln_f.weight"),
    WEIGHT_VECTOR(head.norm_out.beta, HIDDEN, ZERO, WHOLE, "ln_f.bias"),
};

static const struct weight_row llama_input_rows[] = {
    WEIGHT_MATRIX(head.word, VOCAB, HIDDEN, NORMAL, BY_WORD, "embed_tokens.weight"),
};

static const struct weight_row llama_output_rows[] = {
    WEIGHT_VECTOR(head.norm_out.gamma, HIDDEN, ONE, WHOLE, "model.norm.weight"),
};

static const struct weight_row llama_own_output_rows[] = {
    WEIGHT_VECTOR(head.norm_out.gamma, HIDDEN, ONE, WHOLE, "model.norm.weight"),
    WEIGHT_MATRIX(head.decoder, VOCAB, HIDDEN, NORMAL, BY_WORD, "lm_head.weight"),
};

static const struct weight_row gpt_neox_input_rows[] = {
    WEIGHT_MATRIX(head.word, VOCAB, HIDDEN, NORMAL, BY_WORD, "embed_in.weight"),
};

#define GPT_NEOX_OUTPUT_ROWS                                                                                 \
    WEIGHT_VECTOR(head.norm_out.gamma, HIDDEN, ONE, WHOLE, "gpt_neox.final_layer_norm.weight"),              \
        WEIGHT_VECTOR(head.norm_out.beta, HIDDEN, ZERO, WHOLE, "gpt_neox.final_layer_norm.bias")
static const struct weight_row gpt_neox_output_rows[] = {GPT_NEOX_OUTPUT_ROWS};
static const struct weight_row gpt_neox_own_output_rows[] = {
    GPT_NEOX_OUTPUT_ROWS,
    WEIGHT_MATRIX(head.decoder, VOCAB, HIDDEN, NORMAL, BY_WORD, "embed_out.weight"),
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
        WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "post_attention_layernorm.weight"), LLAMA_ROWS_FF
#define LLAMA_ROWS_FF                                                                                        \
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.gate_proj.weight",                      \
                  "mlp.up_proj.weight"),                                                                     \
        WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.down_proj.weight")

static const struct weight_row llama_layer_rows[] = {LLAMA_ROWS_IN, LLAMA_ROWS_OUT};
static const struct weight_row qwen2_layer_rows[] = {LLAMA_ROWS_IN, LLAMA_QKV_BIAS, LLAMA_ROWS_OUT};
static const struct weight_row qwen3_layer_rows[] = {
    LLAMA_ROWS_IN, WEIGHT_VECTOR(attention.q_norm, HEAD, ONE, OF_HEADS, "self_attn.q_norm.weight"),
    WEIGHT_VECTOR(attention.k_norm, HEAD, ONE, OF_HEADS, "self_attn.k_norm.weight"), LLAMA_ROWS_OUT};
static const struct weight_row olmo2_layer_rows[] = {
    WEIGHT_QKV(attention.w_qkv, "self_attn.q_proj.weight", "self_attn.k_proj.weight",
               "self_attn.v_proj.weight"),
    WEIGHT_VECTOR(attention.q_norm, HEADS, ONE, BY_HEAD, "self_attn.q_norm.weight"),
    WEIGHT_VECTOR(attention.k_norm, KV, ONE, BY_HEAD, "self_attn.k_norm.weight"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HEADS, RESIDUAL, BY_COL, "self_attn.o_proj.weight"),
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, OF_ROWS, "post_attention_layernorm.weight"),
    LLAMA_ROWS_FF,
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "post_feedforward_layernorm.weight")};

_Static_assert(sizeof gpt2_layer_rows / sizeof gpt2_layer_rows[0] == BLOCK_N_ROWS &&
                   sizeof bloom_layer_rows / sizeof bloom_layer_rows[0] == BLOCK_N_ROWS,
               "a row for every field");

/* Where a product adds b_o, every rank has the gradient of all rows. */
#define GPT_NEOX_LAYER_ROWS(cut_of_b_o)                                                                      \
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, OF_ROWS, "input_layernorm.weight"),                             \
        WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, OF_ROWS, "input_layernorm.bias"),                           \
        WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "attention.query.weight",            \
                      "attention.key.weight", "attention.value.weight"),                                     \
        WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "attention.query.bias", "attention.key.bias",    \
                    "attention.value.bias"),                                                                 \
        WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, RESIDUAL, BY_COL, "attention.dense.weight"),            \
        WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, cut_of_b_o, "attention.dense.bias"),                      \
        WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "post_attention_layernorm.weight"),                \
        WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, OF_ROWS, "post_attention_layernorm.bias"),                  \
        WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.dense_h_to_4h.weight"),             \
        WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "mlp.dense_h_to_4h.bias"),                           \
        WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.dense_4h_to_h.weight"),           \
        WEIGHT_BIAS(ff.b_2, HIDDEN, ZERO, WHOLE, "mlp.dense_4h_to_h.bias")

static const struct weight_row gpt_neox_layer_rows[] = {GPT_NEOX_LAYER_ROWS(OF_ROWS)};
static const struct weight_row gpt_neox_parallel_rows[] = {GPT_NEOX_LAYER_ROWS(WHOLE)};

/* What a family calls its weights and modules, and how its layers are wired. */
struct decoder_names {
    struct block_part input, layers, output; /* the output's layer is that of the heads, set with the sizes */
    const char *word;                        /* the parameter E */
    const char *input_module, *norm_module;
    const struct block_wiring *wiring;
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
                                                "transformer.ln_f",
                                                &block_pre},
                                  bloom_names = {PART(bloom_input_rows, "transformer.", MODEL_INPUT_LAYER),
                                                 PART(bloom_layer_rows, "transformer.h.", BLOCK_EVERY_LAYER),
                                                 PART(output_rows, "transformer.", 0),
                                                 "transformer.word_embeddings.weight",
                                                 "transformer.word_embeddings_layernorm",
                                                 "transformer.ln_f",
                                                 &block_pre};

/* Names of Llama's relatives, with E or a decoder of its own. */
enum llama_form { FORM_LLAMA, FORM_QWEN2, FORM_QWEN3, FORM_OLMO2 };

#define LLAMA_NAMES(layer_rows, output_rows, wiring)                                                         \
    {                                                                                                        \
        PART(llama_input_rows, "model.", MODEL_INPUT_LAYER),                                                 \
            PART(layer_rows, "model.layers.", BLOCK_EVERY_LAYER), PART(output_rows, "", 0),                  \
            "model.embed_tokens.weight", "model.embed_tokens", "model.norm", &wiring                         \
    }
#define BOTH_LLAMA_NAMES(layer_rows, wiring)                                                                 \
    {                                                                                                        \
        LLAMA_NAMES(layer_rows, llama_output_rows, wiring),                                                  \
            LLAMA_NAMES(layer_rows, llama_own_output_rows, wiring)                                           \
    }
static const struct decoder_names llama_names[][2] = {
    [FORM_LLAMA] = BOTH_LLAMA_NAMES(llama_layer_rows, block_pre),
    [FORM_QWEN2] = BOTH_LLAMA_NAMES(qwen2_layer_rows, block_pre),
    [FORM_QWEN3] = BOTH_LLAMA_NAMES(qwen3_layer_rows, block_pre),
    [FORM_OLMO2] = BOTH_LLAMA_NAMES(olmo2_layer_rows, block_reordered)};

static enum llama_form llama_form_of(const struct decoder_config *c)
{
    return c->qk_norm == LAYER_QK_NORM_ALL     ? FORM_OLMO2
           : c->qk_norm == LAYER_QK_NORM_HEADS ? FORM_QWEN3
           : c->qkv_bias                       ? FORM_QWEN2
                                               : FORM_LLAMA;
}

/* Names of GPT-NeoX by whether its sublayers are parallel, and whether it has a decoder of its own. */
#define GPT_NEOX_NAMES(layer_rows, output_rows, wiring)                                                      \
    {                                                                                                        \
        PART(gpt_neox_input_rows, "gpt_neox.", MODEL_INPUT_LAYER),                                           \
            PART(layer_rows, "gpt_neox.layers.", BLOCK_EVERY_LAYER), PART(output_rows, "", 0),               \
            "gpt_neox.embed_in.weight", "gpt_neox.emb_dropout", "gpt_neox.final_layer_norm", &wiring         \
    }
static const struct decoder_names gpt_neox_names[2][2] = {
    {GPT_NEOX_NAMES(gpt_neox_layer_rows, gpt_neox_output_rows, block_pre),
     GPT_NEOX_NAMES(gpt_neox_layer_rows, gpt_neox_own_output_rows, block_pre)},
    {GPT_NEOX_NAMES(gpt_neox_parallel_rows, gpt_neox_output_rows, block_parallel),
     GPT_NEOX_NAMES(gpt_neox_parallel_rows, gpt_neox_own_output_rows, block_parallel)}};

/* The rows of the table in memory are a multiple, so that products of the head are aligned. */
enum { VOCAB_GRAIN = 8 };

/* ---- activations ---- */

struct decoder_acts {
    struct next_token_acts head;    /* first */
    tensor words, mean_in, rstd_in; /* [R, H], [R], [R] E[id] and its norm, BLOOM's; R as in block_stack */
};

static void carve_input(const struct block_model *m, void *acts, struct arena *arena,
                        struct layer_memory memory)
{
    struct decoder_acts *a = acts;
    enum dtype vector = dtype_of_vectors(memory.dtype);
    int64_t r = layer_own_rows(memory), h = m->model.hidden_size;
    a->head.stack.in = arena_carve_2d(arena, memory.stream, r, h);
    if (decoder_of(&m->model)->config.embedding_norm) {
        a->words = arena_carve_2d(arena, memory.dtype, r, h);
        a->mean_in = arena_carve_1d(arena, vector, r);
        a->rstd_in = arena_carve_1d(arena, vector, r);
    }
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
    tensor all = stream_room(p->x, p->stream, words, a->head.stack.scratch.branch);
    word_table_look_up(p->x, p->stream, all, w->head.word, p->model->vocab_size);
    stream_keep_own(p->x, p->stream, words, all);
}

static void input_forward(const struct model_pass *p)
{
    const struct decoder_acts *a = p->acts;
    const struct decoder_weights *w = p->weights;
    const struct ops *op = p->x->ops;
    struct dropout drop = embedding_dropout(p);
    const tensor branch = stream_own(p->x, p->stream, a->head.stack.scratch.branch);
    exec_enter(p->x, "embeddings", -1);
    if (decoder_of(p->model)->config.embedding_norm) {
        /* x = LN(E[id]) */
        look_up_words(p, a->words);
        op->layernorm(p->x, branch, a->mean_in, a->rstd_in, a->words, w->norm_in.gamma, w->norm_in.beta,
                      decoder_of(p->model)->config.norm_eps);
        op->cast(p->x, a->head.stack.in, branch);
        return;
    }
    /* x = E[id] */
    look_up_words(p, branch);
    op->cast(p->x, a->head.stack.in, branch);
    if (!tensor_is_null(w->position)) {
        /* x = x + P[position] */
        op->gather_rows(p->x, branch, w->position, stream_own(p->x, p->stream, p->stream->positions));
        op->residual_add(p->x, a->head.stack.in, a->head.stack.in, branch);
    }
    /* x = dropout(x) */
    if (drop.p > 0) {
        op->dropout(p->x, a->head.stack.in, a->head.stack.in,
                    stream_own(p->x, p->stream, p->stream->row_keys), drop);
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
        tensor d = stream_narrow(p->x, stream_own(p->x, p->stream, a->head.stack.scratch.branch), dx);
        op->layernorm_backward(p->x, d, g->norm_in.gamma, g->norm_in.beta, d, a->words, a->mean_in,
                               a->rstd_in, w->norm_in.gamma);
        d = stream_gather(p->x, p->stream, d, a->head.stack.scratch.whole);
        word_table_add_gradients(p->x, g->head.word, d, p->stream->ids, p->model->vocab_size);
        return;
    }
    /* x = dropout(E[id] + P[position]), or dropout(E[id]) */
    if (drop.p > 0) {
        op->dropout(p->x, dx, dx, stream_own(p->x, p->stream, p->stream->row_keys), drop);
    }
    dx = stream_gather(p->x, p->stream, dx, a->head.stack.scratch.whole);
    if (!tensor_is_null(g->position)) {
        op->scatter_add_rows(p->x, g->position, dx, p->stream->positions);
    }
    word_table_add_gradients(p->x, g->head.word, dx, p->stream->ids, p->model->vocab_size);
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

static json_t *gpt_neox_to_json(const struct model *m)
{
    return gpt_neox_config_to_json(&decoder_of(m)->config);
}

static json_t *llama_to_json(const struct model *m)
{
    return llama_config_to_json(&decoder_of(m)->config);
}

#define DECODER_TYPE(name_, to_json_, in_slices_)                                                            \
    {                                                                                                        \
        .name = name_, .in_slices = in_slices_, .divides_rows = in_slices_, .int8 = MODEL_INT8_ALL,          \
        .config = config, .to_json = to_json_, BLOCK_MODEL_FUNCTIONS, NEXT_TOKEN_FUNCTIONS,                  \
        .carve_cache = block_model_carve_cache, .input_forward = input_forward,                              \
        .input_backward = input_backward,                                                                    \
    }

/* Slices of OLMo 2's layers would have parts of the rows that its norms of queries and keys need whole. */
static const struct model_type gpt2_type = DECODER_TYPE("gpt2", gpt2_to_json, true),
                               bloom_type = DECODER_TYPE("bloom", bloom_to_json, true),
                               gpt_neox_type = DECODER_TYPE("gpt_neox", gpt_neox_to_json, true),
                               llama_type = DECODER_TYPE("llama", llama_to_json, true),
                               olmo2_type = DECODER_TYPE("olmo2", llama_to_json, false);

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
                             .max_length = c->n_positions,
                             .feed_forward_size = c->feed_forward_size,
                             .task = MODEL_TASK_CAUSAL_LM,
                             .vocab_size = c->vocab_size,
                             .n_words = c->n_words,
                             .layout = text_batch_layout,
                             .tied = c->own_decoder ? NULL : names->word},
                   .form = {.head_size = decoder_config_head_size(c),
                            .n_kv_heads = c->n_kv_heads,
                            .dropout = c->hidden_dropout,
                            .attention_dropout = c->attention_dropout,
                            .norm_eps = c->norm_eps,
                            .activation = c->activation,
                            .norm = c->norm,
                            .qk_norm = c->qk_norm,
                            .positions = c->positions,
                            .is_causal = true,
                            .window = c->window},
                   .others = c->unturned,
                   .wiring = names->wiring,
                   .rotary = c->rotary,
                   .sizes = {.real[DIM_POSITIONS] = c->n_positions,
                             .initializer_range = c->initializer_range},
                   .weight_bytes = sizeof(struct decoder_weights),
                   .act_bytes = sizeof(struct decoder_acts),
                   .input_module = names->input_module,
                   .norm_module = names->norm_module,
                   .carve_input = carve_input},
        .config = *c,
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

struct status gpt_neox_model_create(struct model **model, const void *config, enum model_task task)
{
    const struct decoder_config *c = config;
    (void)task;
    return create(model, c, &gpt_neox_type, &gpt_neox_names[c->is_parallel][c->own_decoder]);
}

struct status llama_model_create(struct model **model, const void *config, enum model_task task)
{
    const struct decoder_config *c = config;
    (void)task;
    enum llama_form form = llama_form_of(c);
    return create(model, c, form == FORM_OLMO2 ? &olmo2_type : &llama_type,
                  &llama_names[form][c->own_decoder]);
}
