#include "model/decoder/decoder_family.h"

#include "core/log.h"
#include "model/decoder/decoder_rows.h"
#include "nn/decoder/decoder_config.h"

static struct status parse_gpt2(void *config, const json_t *object, const char *source)
{
    return gpt2_config_parse(config, object, source);
}

static struct status parse_bloom(void *config, const json_t *object, const char *source)
{
    return bloom_config_parse(config, object, source);
}

static json_t *gpt2_to_json(const void *config, enum model_task task)
{
    (void)task;
    return gpt2_config_to_json(config);
}

static json_t *bloom_to_json(const void *config, enum model_task task)
{
    (void)task;
    return bloom_config_to_json(config);
}

static const char *gpt2_class(enum model_task task)
{
    return task == MODEL_TASK_ENCODER ? "GPT2Model" : "GPT2LMHeadModel";
}

static const char *bloom_class(enum model_task task)
{
    return task == MODEL_TASK_ENCODER ? "BloomModel" : "BloomForCausalLM";
}

/* ---- what files call the tensors: Hugging Face's directories, and the forms of other programs ---- */

/* ---- GGUF: llama.cpp's names, matrices [out, in] ---- */

#define GGUF_GPT2                                                                                            \
    NAMED("token_embd.", "transformer.wte."), NAMED("position_embd.", "transformer.wpe."),                   \
        NAMED("output_norm.", "transformer.ln_f."), NAMED("blk.", "transformer.h."),                         \
        NAMED(".attn_norm.", ".ln_1."), NAMED(".attn_output.", ".attn.out."), NAMED(".ffn_norm.", ".ln_2."), \
        NAMED(".ffn_up.", ".mlp.in."), NAMED(".ffn_down.", ".mlp.out.")

#define GGUF_BLOOM                                                                                           \
    NAMED("token_embd_norm.", "transformer.word_embeddings_layernorm."),                                     \
        NAMED("token_embd.", "transformer.word_embeddings."), NAMED("output_norm.", "transformer.ln_f."),    \
        NAMED("blk.", "transformer.h."), NAMED(".attn_norm.", ".input_layernorm."),                          \
        NAMED(".attn_output.", ".self_attention.dense."), NAMED(".ffn_norm.", ".post_attention_layernorm."), \
        NAMED(".ffn_up.", ".mlp.dense_h_to_4h."), NAMED(".ffn_down.", ".mlp.dense_4h_to_h.")

/* Some converters write the decoder, which is tied to the table of words; it is read to be compared. */
#define GGUF_DECODER NAMED("output.weight", "lm_head.weight")

#define GGUF_JOINED(module) JOINED(".attn_qkv", ".weight", ".bias", module, false, false)

static const struct model_family_rename gpt2_gguf_renames[] = {GGUF_GPT2, END_OF_RENAMES};
static const struct model_family_rename bloom_gguf_renames[] = {GGUF_BLOOM, END_OF_RENAMES};
static const struct model_family_join gpt2_gguf_joins[] = {GGUF_JOINED(".attn"), END_OF_JOINS};
static const struct model_family_join bloom_gguf_joins[] = {GGUF_JOINED(".self_attention"), END_OF_JOINS};
static const struct model_family_layout gpt2_gguf_layout = {gpt2_gguf_renames, gpt2_gguf_joins};
static const struct model_family_layout bloom_gguf_layout = {bloom_gguf_renames, bloom_gguf_joins};

/* ---- Megatron-DeepSpeed: names of megatron_names.h, matrices [out, in] ----
 *
 * Its attention is called "attention" in Microsoft's program, which trains GPT-2's network, and
 * "self_attention" in bigscience's, which trains BLOOM's; both are read. */

#define MEGATRON_GPT2                                                                                        \
    NAMED("embedding.word_embeddings.", "transformer.wte."),                                                 \
        NAMED("embedding.position_embeddings.", "transformer.wpe."), NAMED("final.", "transformer.ln_f."),   \
        NAMED("layers.", "transformer.h."), NAMED(".input_layernorm.", ".ln_1."),                            \
        NAMED(".post_attention_layernorm.", ".ln_2."), NAMED(".attention.dense.", ".attn.out."),             \
        NAMED(".mlp.dense_h_to_4h.", ".mlp.in."), NAMED(".mlp.dense_4h_to_h.", ".mlp.out.")

#define MEGATRON_BLOOM                                                                                       \
    NAMED("embedding.word_embeddings.norm.", "transformer.word_embeddings_layernorm."),                      \
        NAMED("embedding.word_embeddings.", "transformer.word_embeddings."),                                 \
        NAMED("embedding.position_embeddings.", "transformer.word_position_embeddings."),                    \
        NAMED("final.", "transformer.ln_f."), NAMED("layers.", "transformer.h.")

#define BLOOM_JOINED                                                                                         \
    JOINED(".self_attention.query_key_value", ".weight", ".bias", ".self_attention", true, false)
#define MEGATRON_JOINED JOINED(".attention.query_key_value", ".weight", ".bias", ".attn", true, false)

static const struct model_family_rename gpt2_megatron_renames[] = {MEGATRON_GPT2, END_OF_RENAMES};
static const struct model_family_rename bloom_megatron_renames[] = {MEGATRON_BLOOM, END_OF_RENAMES};
static const struct model_family_join gpt2_megatron_joins[] = {MEGATRON_JOINED, END_OF_JOINS};
static const struct model_family_join bloom_megatron_joins[] = {BLOOM_JOINED, END_OF_JOINS};
static const struct model_family_layout gpt2_megatron_layout = {gpt2_megatron_renames, gpt2_megatron_joins};
static const struct model_family_layout bloom_megatron_layout = {bloom_megatron_renames,
                                                                 bloom_megatron_joins};

/* ---- all that is read ---- */

/* ".attn.bias" is a causal mask that older files hold next to the weights of each layer. */
static const struct model_family_rename gpt2_renames[] = {
    {".attn.bias", ".attn.masked_bias", true, false, false},
    GGUF_GPT2,
    GGUF_DECODER,
    NAMED(".self_attention.", ".attention."),
    MEGATRON_GPT2,
    END_OF_RENAMES,
};

/* GPT-2's linear layers are Conv1D, whose matrices are [in, out]. */
static const struct model_family_rename gpt2_forms[] = {
    {".attn.c_proj.weight", ".attn.out.weight", true, true, false},
    {".attn.c_proj.bias", ".attn.out.bias", true, false, false},
    {".mlp.c_fc.weight", ".mlp.in.weight", true, true, false},
    {".mlp.c_fc.bias", ".mlp.in.bias", true, false, false},
    {".mlp.c_proj.weight", ".mlp.out.weight", true, true, false},
    {".mlp.c_proj.bias", ".mlp.out.bias", true, false, false},
    END_OF_RENAMES,
};

static const struct model_family_join gpt2_joins[] = {
    JOINED(".attn.c_attn", ".weight", ".bias", ".attn", false, true),
    GGUF_JOINED(".attn"),
    MEGATRON_JOINED,
    END_OF_JOINS,
};

static const struct model_family_rename bloom_renames[] = {
    GGUF_BLOOM, GGUF_DECODER, MEGATRON_BLOOM, NAMED(".attention.", ".self_attention."), END_OF_RENAMES,
};

static const struct model_family_join bloom_joins[] = {
    BLOOM_JOINED,
    GGUF_JOINED(".self_attention"),
    END_OF_JOINS,
};

/* ---- what GGUF files say, so that llama.cpp computes both (its src/models/gpt2.cpp, bloom.cpp) ---- */

static const struct model_family_gguf_key gpt2_keys[] = {
    KEY_SIZE("context_length", "n_positions"),
    KEY_SIZE("embedding_length", "n_embd"),
    KEY_SIZE("block_count", "n_layer"),
    KEY_MAY_SIZE("feed_forward_length", "n_inner"),
    KEY_MAY_TEXT("activation_function", "activation_function"), /* kiln's own: llama.cpp has one */
    KEY_SIZE("attention.head_count", "n_head"),
    KEY_FOLLOWS("attention.head_count_kv", "n_head", 1),
    KEY_REAL("attention.layer_norm_epsilon", "layer_norm_epsilon"),
    KEYS_OF_CONVERTERS,
    END_OF_KEYS,
};

static const struct model_family_gguf_key bloom_keys[] = {
    KEY_SIZE("context_length", "seq_length"),
    KEY_SIZE("embedding_length", "hidden_size"),
    KEY_SIZE("block_count", "n_layer"),
    KEY_FOLLOWS("feed_forward_length", "hidden_size", 4),
    KEY_SIZE("attention.head_count", "n_head"),
    KEY_FOLLOWS("attention.head_count_kv", "n_head", 1),
    KEY_REAL("attention.layer_norm_epsilon", "layer_norm_epsilon"),
    KEYS_OF_CONVERTERS,
    END_OF_KEYS,
};

/* llama.cpp rounds the length of a context up to this (GGML_PAD in llama_context). */
enum { CONTEXT_PAD = 256 };

static struct status warn_of_gpt2(json_t *root, const void *config)
{
    const struct decoder_config *c = config;
    (void)root;
    if (c->n_positions < CONTEXT_PAD) {
        log_warning("this model has %lld positions, but llama.cpp rounds a context up to %d and aborts at a "
                    "position that the file lacks: train a model of %d positions for it",
                    (long long)c->n_positions, CONTEXT_PAD, CONTEXT_PAD);
    }
    if (c->activation == LAYER_GELU_EXACT) {
        log_warning("this model has the exact GELU (erf), but GGUF's gpt2 graph has only the tanh form: a "
                    "program that runs the file computes slightly other logits");
    }
    return status_ok();
}

/* llama.cpp adds the positions to the embeddings in fp32. */
static const char *const gpt2_in_f32[] = {"position_embd.weight", NULL};
static const char *const bloom_in_f32[] = {NULL};

static const struct model_family_gguf gpt2_gguf = {.architecture = "gpt2",
                                                   .layout = &gpt2_gguf_layout,
                                                   .in_f32 = gpt2_in_f32,
                                                   .keys = gpt2_keys,
                                                   .before_write = warn_of_gpt2};
static const struct model_family_gguf bloom_gguf = {
    .architecture = "bloom", .layout = &bloom_gguf_layout, .in_f32 = bloom_in_f32, .keys = bloom_keys};

/* ---- Hugging Face's files ---- */

/* Causal masks that older files hold next to the weights of each layer. */
static const char *const states[] = {"masked_bias", NULL};

static const char *const gpt2_bare[] = {"wte.", "wpe.", "h.", "ln_f.", NULL};
static const char *const gpt2_tied[][2] = {{"lm_head.weight", "transformer.wte.weight"}, {NULL, NULL}};

static const char *const bloom_bare[] = {"word_embeddings.", "word_embeddings_layernorm.", "h.", "ln_f.",
                                         NULL};
static const char *const bloom_tied[][2] = {{"lm_head.weight", "transformer.word_embeddings.weight"},
                                            {NULL, NULL}};

static const char *const gpt2_types[] = {"gpt2", NULL};
static const char *const bloom_types[] = {"bloom", NULL};

#define TRANSFORMER .root = "transformer.", .states = states

const struct model_family gpt2_family = {
    .name = "GPT-2",
    .model_types = gpt2_types,
    .own_key = "n_embd",
    .usual_words = 50257,
    .parse_config = parse_gpt2,
    .config_to_json = gpt2_to_json,
    .create = gpt2_model_create,
    .class_of = gpt2_class,
    .bare = gpt2_bare,
    .renames = gpt2_renames,
    .joins = gpt2_joins,
    .forms = gpt2_forms,
    .tied = gpt2_tied,
    .words = "transformer.wte.weight",
    .gguf = &gpt2_gguf,
    .megatron = &gpt2_megatron_layout,
    .parts = {[NAMES_EMBEDDINGS] = "transformer.w", [NAMES_ENCODER] = "transformer."},
    TRANSFORMER,
    DECODER_FAMILY,
};

const struct model_family bloom_family = {
    .name = "BLOOM",
    .model_types = bloom_types,
    .own_key = "apply_residual_connection_post_layernorm",
    .usual_words = 250880,
    .parse_config = parse_bloom,
    .config_to_json = bloom_to_json,
    .create = bloom_model_create,
    .class_of = bloom_class,
    .bare = bloom_bare,
    .renames = bloom_renames,
    .joins = bloom_joins,
    .tied = bloom_tied,
    .words = "transformer.word_embeddings.weight",
    .gguf = &bloom_gguf,
    .megatron = &bloom_megatron_layout,
    .parts = {[NAMES_EMBEDDINGS] = "transformer.word_", [NAMES_ENCODER] = "transformer."},
    TRANSFORMER,
    DECODER_FAMILY,
};
