/* The directories of Llama's relatives: their tensors are named as kiln's parameters are. */
#include "model/decoder/decoder_family.h"

#include "core/log.h"
#include "io/gguf_file.h"
#include "model/decoder/decoder_rows.h"

#include <math.h>
#include <string.h>

static struct status parse(void *config, const json_t *object, const char *source)
{
    return llama_config_parse(config, object, source);
}

static json_t *to_json(const void *config, enum model_task task)
{
    (void)task;
    return llama_config_to_json(config);
}

static const char *const bare[] = {"embed_tokens.", "layers.", "norm.", NULL};
static const char *const buffers[] = {"rope_freqs.weight", NULL}; /* GGUF's divisors of rotary angles */
static const char *const states[] = {"inv_freq", NULL}; /* frequencies of rotary positions in older files */
static const char *const tied[][2] = {{"lm_head.weight", "model.embed_tokens.weight"}, {NULL, NULL}};
static const char *const not_tied[][2] = {{NULL, NULL}};

/* ---- GGUF: llama.cpp's names; its llama turns columns 2 i and 2 i + 1 of a head, the others halves, as
 * kiln ---- */

#define GGUF_EDGES NAMED("token_embd.", "model.embed_tokens."), NAMED("output_norm.", "model.norm.")
#define GGUF_LAYER                                                                                           \
    NAMED("blk.", "model.layers."), NAMED(".attn_v.", ".self_attn.v_proj."),                                 \
        NAMED(".attn_output.", ".self_attn.o_proj."), NAMED(".ffn_gate.", ".mlp.gate_proj."),                \
        NAMED(".ffn_up.", ".mlp.up_proj."), NAMED(".ffn_down.", ".mlp.down_proj."),                          \
        NAMED("output.weight", "lm_head.weight"), END_OF_RENAMES
#define GGUF_NORMS                                                                                           \
    NAMED(".attn_norm.", ".input_layernorm."), NAMED(".ffn_norm.", ".post_attention_layernorm.")
#define GGUF_HALVES                                                                                          \
    NAMED(".attn_q.", ".self_attn.q_proj."), NAMED(".attn_k.", ".self_attn.k_proj."),                        \
        NAMED(".attn_q_norm.", ".self_attn.q_norm."), NAMED(".attn_k_norm.", ".self_attn.k_norm.")

/* Query and key in pairs. */
static const struct model_family_rename paired_renames[] = {
    GGUF_EDGES,
    GGUF_NORMS,
    {".attn_q.", ".self_attn.q_proj.", false, false, true},
    {".attn_k.", ".self_attn.k_proj.", false, false, true},
    GGUF_LAYER};
static const struct model_family_rename halved_renames[] = {GGUF_EDGES, GGUF_NORMS, GGUF_HALVES, GGUF_LAYER};
static const struct model_family_rename olmo2_renames[] = {
    GGUF_EDGES, GGUF_HALVES, NAMED(".post_attention_norm.", ".post_attention_layernorm."),
    NAMED(".post_ffw_norm.", ".post_feedforward_layernorm."), GGUF_LAYER};

/* Phi-3 has the same products in two tensors, here as in its own files. */
static const struct model_family_join phi3_joins[] = {
    {".self_attn.qkv_proj.weight",
     {".self_attn.q_proj.weight", ".self_attn.k_proj.weight", ".self_attn.v_proj.weight"},
     false,
     false},
    {".mlp.gate_up_proj.weight", {".mlp.gate_proj.weight", ".mlp.up_proj.weight"}, false, false},
    END_OF_JOINS};
static const struct model_family_rename phi3_renames[] = {
    GGUF_EDGES, GGUF_NORMS, NAMED(".attn_qkv.", ".self_attn.qkv_proj."),
    NAMED(".ffn_up.", ".mlp.gate_up_proj."), GGUF_LAYER};

static const struct model_family_layout paired_layout = {.renames = paired_renames},
                                        halved_layout = {.renames = halved_renames},
                                        olmo2_layout = {.renames = olmo2_renames},
                                        phi3_layout = {phi3_renames, phi3_joins};

/* Llama 3's scaling is not in llama.cpp's keys, but in a tensor: `rope.llama3` is kiln's own. */
#define KEY_LLAMA3(name) KEY_MAY_REAL("rope.llama3." name, "llama3." name)

static const struct model_family_gguf_key llama_keys[] = {
    KEY_SIZE("context_length", "max_position_embeddings"),
    KEY_SIZE("embedding_length", "hidden_size"),
    KEY_SIZE("block_count", "num_hidden_layers"),
    KEY_SIZE("feed_forward_length", "intermediate_size"),
    KEY_SIZE("attention.head_count", "num_attention_heads"),
    KEY_MAY_SIZE("attention.head_count_kv", "num_key_value_heads"),
    KEY_REAL("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    KEY_MAY_SIZE("attention.key_length", "head_dim"),
    KEY_FOLLOWS("attention.value_length", "head_dim", 1),
    KEY_FOLLOWS("rope.dimension_count", "head_dim", 1),
    KEY_MAY_SIZE("attention.sliding_window", "sliding_window"), /* Mistral's, which llama.cpp leaves out */
    KEY_MAY_REAL("rope.freq_base", "rope_theta"),
    KEY_MAY_TEXT("rope.scaling.type", "rope_scaling.rope_type"),
    KEY_MAY_REAL("rope.scaling.factor", "rope_scaling.factor"),
    KEY_MAY_SIZE("rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings"),
    KEY_LLAMA3("factor"),
    KEY_LLAMA3("low_freq_factor"),
    KEY_LLAMA3("high_freq_factor"),
    KEY_MAY_SIZE("rope.llama3.original_max_position_embeddings", "llama3.original_max_position_embeddings"),
    KEYS_OF_CONVERTERS,
    END_OF_KEYS,
};

/* llama.cpp stops at a type of scaling that it does not know. */
static struct status part_llama3(json_t *root, const void *config)
{
    const struct decoder_config *c = config;
    if (c->rotary.scaling == ROTARY_LLAMA3) {
        json_object_set(root, "llama3", json_object_get(root, "rope_scaling"));
        json_object_del(root, "rope_scaling");
    }
    if (c->window > 0) {
        log_warning("this model attends to %lld tokens at most, but llama.cpp's graph to all: a program that "
                    "runs the file computes other logits for longer texts",
                    (long long)c->window + 1);
    }
    return status_ok();
}

/* Llama 3's scaling divides the angle of each pair. */
static double divisor_of(const struct rotary *r, int64_t pair)
{
    struct rotary unscaled = *r;
    unscaled.scaling = ROTARY_UNSCALED;
    return rotary_frequency(&unscaled, pair) / rotary_frequency(r, pair);
}

static int64_t divisors(float *to, int64_t most, const void *config)
{
    const struct decoder_config *c = config;
    int64_t n = c->rotary.size / 2;
    if (c->rotary.scaling != ROTARY_LLAMA3 || n > most) {
        return 0;
    }
    for (int64_t i = 0; i < n; i++) {
        to[i] = (float)divisor_of(&c->rotary, i);
    }
    return n;
}

/* A real number of an object, or what absence means. */
static double number_of(const json_t *object, const char *key, double otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

/* Checks that the divisors of the file are those of a scaling: converters make them in fp32. */
static struct status check_divisors(const struct rotary *r, const struct stored_tensor *t, const char *source)
{
    FAIL_IF(t->dtype != DTYPE_F32 || t->unreadable != NULL || t->n_dims != 1 || t->dims[0] != r->size / 2,
            STATUS_DATA, "%s: rope_freqs.weight must have a number in F32 for each of %lld pairs of a head",
            source, (long long)(r->size / 2));
    for (int64_t i = 0; i < r->size / 2; i++) {
        float got;
        memcpy(&got, t->data + (size_t)i * sizeof got, sizeof got);
        double wanted = divisor_of(r, i);
        FAIL_IF(!(fabs((double)got - wanted) <= 1e-4 * wanted), STATUS_DATA,
                "%s: element %lld of rope_freqs.weight is %g, but %g by Llama 3's scaling with the factor "
                "%g: kiln "
                "has no such rotary positions",
                source, (long long)i, (double)got, wanted, r->factor);
    }
    return status_ok();
}

/* The parameters of Llama 3's scaling: kiln's own keys, or those of all models of Meta's (arXiv:2407.21783,
 * as published), whose factor is the largest divisor. */
static struct status read_llama3(json_t *root, const struct stored_tensor *t, const char *source)
{
    const json_t *own = json_object_get(root, "llama3");
    double heads = number_of(root, "num_attention_heads", 1), largest = 1;
    for (int64_t i = 0; t->dtype == DTYPE_F32 && t->unreadable == NULL && i < t->dims[0]; i++) {
        float value;
        memcpy(&value, t->data + (size_t)i * sizeof value, sizeof value);
        largest = (double)value > largest ? (double)value : largest;
    }
    double size = number_of(root, "head_dim", number_of(root, "hidden_size", 0) / (heads > 0 ? heads : 1));
    struct rotary r = {.theta = number_of(root, "rope_theta", 10000),
                       .size = (int64_t)size,
                       .scaling = ROTARY_LLAMA3,
                       .factor = number_of(own, "factor", largest),
                       .low_factor = number_of(own, "low_freq_factor", 1),
                       .high_factor = number_of(own, "high_freq_factor", 4),
                       .original = (int64_t)number_of(own, "original_max_position_embeddings", 8192)};
    TRY(check_divisors(&r, t, source));
    json_t *scaling = json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", r.factor,
                                "low_freq_factor", r.low_factor, "high_freq_factor", r.high_factor,
                                "original_max_position_embeddings", (json_int_t)r.original);
    FAIL_IF(json_object_set_new(root, "rope_scaling", scaling) != 0, STATUS_MEMORY, "out of memory for %s",
            source);
    return status_ok();
}

/* llama.cpp scales linearly where a file has a factor and no type. */
static void settle_scaling(json_t *root)
{
    json_t *scaling = json_object_get(root, "rope_scaling");
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    bool is_none = type == NULL ? number_of(scaling, "factor", 1) == 1 : strcmp(type, "none") == 0;
    if (scaling != NULL && is_none) {
        json_object_del(root, "rope_scaling");
    } else if (scaling != NULL && type == NULL) {
        json_object_set_new(scaling, "rope_type", json_string("linear"));
    }
}

static struct status complete(json_t *root, const struct gguf_file *f, const char *source)
{
    const struct stored_tensor *t = gguf_file_tensor(f, "rope_freqs.weight");
    bool is_own = gguf_file_tensor(f, "output.weight") != NULL;
    bool is_llama = strcmp(json_string_value(json_object_get(root, "model_type")), "llama") == 0;
    FAIL_IF(gguf_file_tensor(f, "rope_factors_long.weight") != NULL, STATUS_DATA,
            "%s: rope_factors_long.weight scales rotary positions by \"longrope\", which kiln does not have",
            source);
    settle_scaling(root);
    if (number_of(root, "sliding_window", 1) == 0) { /* converters write it where there is none */
        json_object_del(root, "sliding_window");
    }
    if (json_object_get(root, "sliding_window") != NULL &&
        is_llama) { /* Mistral alone of its graph has a window */
        json_object_set_new(root, "model_type", json_string("mistral"));
    }
    TRY(t == NULL ? status_ok() : read_llama3(root, t, source));
    json_object_del(root, "llama3");
    return json_object_set_new(root, "tie_word_embeddings", json_boolean(!is_own)) == 0
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for %s", source);
}

/* llama.cpp's graph knows no other distance of layers without positions (its llama-model.cpp,
 * n_no_rope_layer_step). */
static struct status check_smollm3(json_t *root, const void *config)
{
    const struct decoder_config *c = config;
    for (int64_t i = 0; i < c->n_layers; i++) {
        FAIL_IF(
            layer_cycle_has(&c->unturned, i) != ((i + 1) % 4 == 0), STATUS_UNAVAILABLE,
            "llama.cpp computes SmolLM 3 with layers 3, 7, 11 ... without positions, and layer %lld of this "
            "model is another: a GGUF file would give other texts",
            (long long)i);
    }
    return part_llama3(root, config);
}

#define LLAMA_GGUF(name, order, before)                                                                      \
    {                                                                                                        \
        .architecture = name, .layout = &order##_layout, .in_f32 = no_f32, .keys = llama_keys,               \
        .before_write = before, .after_read = complete, .divisors = divisors                                 \
    }

static const char *const no_f32[] = {NULL};
static const struct model_family_gguf llama_gguf = LLAMA_GGUF("llama", paired, part_llama3),
                                      qwen2_gguf = LLAMA_GGUF("qwen2", halved, part_llama3),
                                      qwen3_gguf = LLAMA_GGUF("qwen3", halved, part_llama3),
                                      olmo2_gguf = LLAMA_GGUF("olmo2", olmo2, part_llama3),
                                      smollm3_gguf = LLAMA_GGUF("smollm3", paired, check_smollm3),
                                      phi3_gguf = LLAMA_GGUF("phi3", phi3, part_llama3);

#define LLAMA                                                                                                \
    .parse_config = parse, .config_to_json = to_json, .create = llama_model_create, .root = "model.",        \
    .bare = bare, .buffers = buffers, .states = states, .words = "model.embed_tokens.weight",                \
    .parts = {                                                                                               \
        [NAMES_EMBEDDINGS] = "model.embed_tokens.", [NAMES_ENCODER] = "model.", [NAMES_MLM] = "lm_head."}

/* A relative, with the word embeddings as the decoder and with a decoder of its own. */
#define RELATIVE_WITH(joins_, type, title, classes, n_words, order, graph)                                   \
    static const char *type##_class(enum model_task task)                                                    \
    {                                                                                                        \
        return task == MODEL_TASK_ENCODER ? classes "Model" : classes "ForCausalLM";                         \
    }                                                                                                        \
    static const char *const type##_types[] = {#type, NULL};                                                 \
    const struct model_family tied_##type##_family = {.name = title " with tied embeddings",                 \
                                                      .owns = llama_config_is_tied,                          \
                                                      .model_types = type##_types,                           \
                                                      .usual_words = n_words,                                \
                                                      .class_of = type##_class,                              \
                                                      .tied = tied,                                          \
                                                      .renames = order##_renames,                            \
                                                      .joins = joins_,                                       \
                                                      .gguf = &graph##_gguf,                                 \
                                                      LLAMA,                                                 \
                                                      DECODER_FAMILY};                                       \
    const struct model_family type##_family = {.name = title,                                                \
                                               .model_types = type##_types,                                  \
                                               .usual_words = n_words,                                       \
                                               .class_of = type##_class,                                     \
                                               .tied = not_tied,                                             \
                                               .renames = order##_renames,                                   \
                                               .joins = joins_,                                              \
                                               .gguf = &graph##_gguf,                                        \
                                               LLAMA,                                                        \
                                               DECODER_FAMILY};

#define RELATIVE(...) RELATIVE_WITH(NULL, __VA_ARGS__)

RELATIVE(llama, "Llama", "Llama", 32000, paired, llama)
RELATIVE(mistral, "Mistral", "Mistral", 32000, paired, llama)
RELATIVE(qwen2, "Qwen 2", "Qwen2", 151936, halved, qwen2)
RELATIVE(qwen3, "Qwen 3", "Qwen3", 151936, halved, qwen3)
RELATIVE(olmo2, "OLMo 2", "Olmo2", 100352, olmo2, olmo2)
RELATIVE_WITH(phi3_joins, phi3, "Phi-3", "Phi3", 32064, phi3, phi3)
RELATIVE(smollm3, "SmolLM 3", "SmolLM3", 128256, paired, smollm3)
