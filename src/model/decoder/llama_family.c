/* The directories of Llama's relatives: their tensors are named as kiln's parameters are. */
#include "model/decoder/decoder_family.h"

#include "model/decoder/decoder_rows.h"

static struct status parse(void *config, const json_t *object, const char *source)
{
    return llama_config_parse(config, object, source);
}

static json_t *to_json(const void *config, enum model_task task)
{
    (void)task;
    return llama_config_to_json(config);
}

static bool is_tied(const json_t *config)
{
    return json_is_true(json_object_get(config, "tie_word_embeddings"));
}

static const char *const bare[] = {"embed_tokens.", "layers.", "norm.", NULL};
static const char *const none[] = {NULL};
static const char *const states[] = {"inv_freq", NULL}; /* frequencies of rotary positions in older files */
static const char *const tied[][2] = {{"lm_head.weight", "model.embed_tokens.weight"}, {NULL, NULL}};
static const char *const not_tied[][2] = {{NULL, NULL}};

/* ---- GGUF: llama.cpp's names; its llama turns columns 2 i and 2 i + 1 of a head, its qwen2 halves, as
 * kiln ---- */

#define GGUF_EDGES NAMED("token_embd.", "model.embed_tokens."), NAMED("output_norm.", "model.norm.")
#define GGUF_LAYER                                                                                           \
    NAMED("blk.", "model.layers."), NAMED(".attn_norm.", ".input_layernorm."),                               \
        NAMED(".attn_v.", ".self_attn.v_proj."), NAMED(".attn_output.", ".self_attn.o_proj."),               \
        NAMED(".ffn_norm.", ".post_attention_layernorm."), NAMED(".ffn_gate.", ".mlp.gate_proj."),           \
        NAMED(".ffn_up.", ".mlp.up_proj."), NAMED(".ffn_down.", ".mlp.down_proj."),                          \
        NAMED("output.weight", "lm_head.weight"), END_OF_RENAMES

/* Query and key in pairs. */
static const struct model_family_rename paired_renames[] = {
    GGUF_EDGES,
    {".attn_q.", ".self_attn.q_proj.", false, false, true},
    {".attn_k.", ".self_attn.k_proj.", false, false, true},
    GGUF_LAYER};
static const struct model_family_rename halved_renames[] = {
    GGUF_EDGES, NAMED(".attn_q.", ".self_attn.q_proj."), NAMED(".attn_k.", ".self_attn.k_proj."), GGUF_LAYER};

static const struct model_family_layout paired_layout = {.renames = paired_renames},
                                        halved_layout = {.renames = halved_renames};

static struct status put(struct gguf_writer *w, const char *architecture, const struct decoder_config *c)
{
    char key[64];
    FAIL_IF(c->rotary.scaling == ROTARY_LLAMA3, STATUS_UNAVAILABLE,
            "kiln does not write Llama 3's scaling of rotary positions as GGUF yet");
    decoder_put_sizes(w, architecture, c);
    decoder_put_real(w, architecture, "attention.layer_norm_rms_epsilon", c->norm_eps);
    decoder_put_real(w, architecture, "rope.freq_base", c->rotary.theta);
    decoder_put_size(w, architecture, "rope.dimension_count", c->rotary.size);
    decoder_put_size(w, architecture, "attention.key_length", c->head_size);
    decoder_put_size(w, architecture, "attention.value_length", c->head_size);
    if (c->rotary.scaling == ROTARY_LINEAR) {
        snprintf(key, sizeof key, "%s.rope.scaling.type", architecture);
        gguf_put_text(w, key, "linear");
        decoder_put_real(w, architecture, "rope.scaling.factor", c->rotary.factor);
    }
    return status_ok();
}

static struct status put_llama(struct gguf_writer *w, const void *config)
{
    return put(w, "llama", config);
}

static struct status put_qwen2(struct gguf_writer *w, const void *config)
{
    return put(w, "qwen2", config);
}

static const char *const no_f32[] = {NULL};
static const struct model_family_gguf paired_gguf = {"llama", &paired_layout, no_f32, put_llama},
                                      halved_gguf = {"qwen2", &halved_layout, no_f32, put_qwen2};

#define LLAMA                                                                                                \
    .parse_config = parse, .config_to_json = to_json, .create = llama_model_create, .root = "model.",        \
    .bare = bare, .buffers = none, .states = states, .words = "model.embed_tokens.weight",                   \
    .parts = {                                                                                               \
        [NAMES_EMBEDDINGS] = "model.embed_tokens.", [NAMES_ENCODER] = "model.", [NAMES_MLM] = "lm_head."}

/* A relative, with the word embeddings as the decoder and with a decoder of its own. */
#define RELATIVE(type, title, classes, n_words, order)                                                       \
    static const char *type##_class(enum model_task task)                                                    \
    {                                                                                                        \
        return task == MODEL_TASK_ENCODER ? classes "Model" : classes "ForCausalLM";                         \
    }                                                                                                        \
    static const char *const type##_types[] = {#type, NULL};                                                 \
    const struct model_family tied_##type##_family = {.name = title " with tied embeddings",                 \
                                                      .owns = is_tied,                                       \
                                                      .model_types = type##_types,                           \
                                                      .usual_words = n_words,                                \
                                                      .class_of = type##_class,                              \
                                                      .tied = tied,                                          \
                                                      .renames = order##_renames,                            \
                                                      .gguf = &order##_gguf,                                 \
                                                      LLAMA,                                                 \
                                                      DECODER_FAMILY};                                       \
    const struct model_family type##_family = {.name = title,                                                \
                                               .model_types = type##_types,                                  \
                                               .usual_words = n_words,                                       \
                                               .class_of = type##_class,                                     \
                                               .tied = not_tied,                                             \
                                               .renames = order##_renames,                                   \
                                               .gguf = &order##_gguf,                                        \
                                               LLAMA,                                                        \
                                               DECODER_FAMILY};

RELATIVE(llama, "Llama", "Llama", 32000, paired)
RELATIVE(mistral, "Mistral", "Mistral", 32000, paired)
RELATIVE(qwen2, "Qwen 2", "Qwen2", 151936, halved)
