/* The directories of GPT-NeoX: Pythia's, and those of its makers. */
#include "model/decoder/decoder_family.h"

#include "core/log.h"
#include "io/gguf_file.h"
#include "model/decoder/decoder_rows.h"

#include <math.h>

static struct status parse(void *config, const json_t *object, const char *source)
{
    return gpt_neox_config_parse(config, object, source);
}

static json_t *to_json(const void *config, enum model_task task)
{
    (void)task;
    return gpt_neox_config_to_json(config);
}

static bool is_tied(const json_t *config)
{
    return json_is_true(json_object_get(config, "tie_word_embeddings"));
}

static const char *class_of(enum model_task task)
{
    return task == MODEL_TASK_ENCODER ? "GPTNeoXModel" : "GPTNeoXForCausalLM";
}

/* ---- names of tensors ---- */

#define GGUF                                                                                                 \
    NAMED("token_embd.", "gpt_neox.embed_in."), NAMED("output_norm.", "gpt_neox.final_layer_norm."),         \
        NAMED("blk.", "gpt_neox.layers."), NAMED(".attn_norm.", ".input_layernorm."),                        \
        NAMED(".attn_output.", ".attention.dense."), NAMED(".ffn_norm.", ".post_attention_layernorm."),      \
        NAMED(".ffn_up.", ".mlp.dense_h_to_4h."), NAMED(".ffn_down.", ".mlp.dense_4h_to_h."),                \
        NAMED("output.weight", "embed_out.weight")

/* llama.cpp's converter puts the rows of all queries, then keys, then values. */
#define GGUF_JOINED JOINED(".attn_qkv", ".weight", ".bias", ".attention", false, false)

static const struct model_family_rename gguf_renames[] = {GGUF, END_OF_RENAMES};
static const struct model_family_join gguf_joins[] = {GGUF_JOINED, END_OF_JOINS};
static const struct model_family_layout gguf_layout = {gguf_renames, gguf_joins};

/* ".attention.bias" is a causal mask that older files hold next to the weights of each layer; the decoder is
 * a lm_head in the memory of transformers 5. */
static const struct model_family_rename renames[] = {
    {".attention.bias", ".attention.masked_bias", true, false, false},
    NAMED("lm_head.weight", "embed_out.weight"),
    GGUF,
    END_OF_RENAMES,
};

static const struct model_family_join joins[] = {
    JOINED(".attention.query_key_value", ".weight", ".bias", ".attention", true, false),
    GGUF_JOINED,
    END_OF_JOINS,
};

static const char *const bare[] = {"embed_in.", "layers.", "final_layer_norm.", NULL};
static const char *const states[] = {"masked_bias", "inv_freq", NULL}; /* constants in older files */
static const char *const tied[][2] = {{"embed_out.weight", "gpt_neox.embed_in.weight"}, {NULL, NULL}};

/* ---- GGUF's keys, of llama.cpp's graph `gptneox` ---- */

static const struct model_family_gguf_key keys[] = {
    KEY_SIZE("context_length", "max_position_embeddings"),
    KEY_SIZE("embedding_length", "hidden_size"),
    KEY_SIZE("block_count", "num_hidden_layers"),
    KEY_SIZE("feed_forward_length", "intermediate_size"),
    KEY_SIZE("attention.head_count", "num_attention_heads"),
    KEY_FOLLOWS("attention.head_count_kv", "num_attention_heads", 1),
    KEY_REAL("attention.layer_norm_epsilon", "layer_norm_eps"),
    KEY_ROW("use_parallel_residual", "use_parallel_residual", BOOL, 0, BOTH),
    KEY_MAY_TEXT("hidden_act", "hidden_act"),           /* kiln's own: llama.cpp has one */
    KEY_SIZE("rope.dimension_count", "rotary_columns"), /* no key of config.json, but a part of a head's */
    KEY_MAY_REAL("rope.freq_base", "rotary_emb_base"),
    KEY_MAY_TEXT("rope.scaling.type", "rope_scaling.rope_type"),
    KEY_MAY_REAL("rope.scaling.factor", "rope_scaling.factor"),
    KEYS_OF_CONVERTERS,
    END_OF_KEYS,
};

static struct status before_write(json_t *root, const void *config)
{
    const struct decoder_config *c = config;
    FAIL_IF(!c->own_decoder, STATUS_UNAVAILABLE,
            "llama.cpp's gptneox has a decoder of its own, but this model's is its word embeddings: no GGUF "
            "file says so");
    FAIL_IF(c->rotary.scaling == ROTARY_LLAMA3, STATUS_UNAVAILABLE,
            "llama.cpp's gptneox has no scaling of rotary positions by \"llama3\"");
    if (c->activation == LAYER_GELU_EXACT) {
        log_warning("this model has the exact GELU (erf), but GGUF's gptneox graph has only the tanh form: a "
                    "program that runs the file computes slightly other logits");
    }
    json_object_set_new(root, "rotary_columns", json_integer(c->rotary.size));
    return status_ok();
}

/* The part of a head's columns that turns, from their number. */
static struct status after_read(json_t *root, const struct gguf_file *f, const char *source)
{
    int64_t columns = json_integer_value(json_object_get(root, "rotary_columns"));
    int64_t n_heads = json_integer_value(json_object_get(root, "num_attention_heads"));
    int64_t hidden = json_integer_value(json_object_get(root, "hidden_size"));
    struct decoder_config c = {.head_size = n_heads > 0 ? hidden / n_heads : 0, .rotary.size = columns};
    FAIL_IF(columns < 1 || c.head_size < columns, STATUS_DATA,
            "%s: gptneox.rope.dimension_count is %lld, but a head has %lld columns", source,
            (long long)columns, (long long)c.head_size);
    bool is_own = gguf_file_tensor(f, "output.weight") != NULL;
    json_object_del(root, "rotary_columns");
    return json_object_set_new(root, "rotary_pct", json_real(decoder_rotary_part(&c))) == 0 &&
                   json_object_set_new(root, "tie_word_embeddings", json_boolean(!is_own)) == 0
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for %s", source);
}

static const char *const no_f32[] = {NULL};
static const struct model_family_gguf gguf = {.architecture = "gptneox",
                                              .layout = &gguf_layout,
                                              .in_f32 = no_f32,
                                              .keys = keys,
                                              .before_write = before_write,
                                              .after_read = after_read};

/* ---- the families ---- */

static const char *const types[] = {"gpt_neox", NULL};

#define GPT_NEOX                                                                                             \
    .model_types = types, .usual_words = 50304, .parse_config = parse, .config_to_json = to_json,            \
    .create = gpt_neox_model_create, .class_of = class_of, .root = "gpt_neox.", .bare = bare,                \
    .renames = renames, .joins = joins, .states = states, .words = "gpt_neox.embed_in.weight",               \
    .gguf = &gguf,                                                                                           \
    .parts = {[NAMES_EMBEDDINGS] = "gpt_neox.embed_in.",                                                     \
              [NAMES_ENCODER] = "gpt_neox.",                                                                 \
              [NAMES_MLM] = "embed_out."},                                                                   \
    DECODER_FAMILY_OF("embed_out.weight")

const struct model_family tied_gpt_neox_family = {
    .name = "GPT-NeoX with tied embeddings", .owns = is_tied, .tied = tied, GPT_NEOX};
const struct model_family gpt_neox_family = {.name = "GPT-NeoX", GPT_NEOX};
