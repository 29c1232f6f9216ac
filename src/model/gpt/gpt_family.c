#include "model/gpt/gpt_family.h"

#include "core/log.h"
#include "io/gguf_writer.h"
#include "model/gpt/gpt_names.h"
#include "nn/gpt/gpt_model.h"

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

static struct model_family_sizes sizes(const void *config)
{
    const struct gpt_config *c = config;
    return (struct model_family_sizes){c->vocab_size, c->n_positions, c->n_layers, c->n_heads, c->norm_eps};
}

static void set_words(void *config, int64_t vocab_size, int64_t n_words)
{
    struct gpt_config *c = config;
    c->vocab_size = vocab_size;
    c->n_words = n_words;
}

static struct model_labels *labels(void *config)
{
    return &((struct gpt_config *)config)->labels;
}

static struct status same_architecture(const void *a, const void *b)
{
    return gpt_config_same_architecture(a, b);
}

static const char *gpt2_class(enum model_task task)
{
    return task == MODEL_TASK_ENCODER ? "GPT2Model" : "GPT2LMHeadModel";
}

static const char *bloom_class(enum model_task task)
{
    return task == MODEL_TASK_ENCODER ? "BloomModel" : "BloomForCausalLM";
}

/* The decoder's weight is the table of words, so the files of a bare model have all that a language model
 * has. */
static enum model_task task_of(const bool has[NAMES_N_PARTS], const json_t *config)
{
    (void)has, (void)config;
    return MODEL_TASK_CAUSAL_LM;
}

/* ---- what GGUF files say, so that llama.cpp computes both (its src/models/gpt2.cpp, bloom.cpp) ---- */

/* The key of a number of the architecture. */
static const char *key_of(char key[64], const char *architecture, const char *name)
{
    snprintf(key, 64, "%s.%s", architecture, name);
    return key;
}

static void put_sizes(struct gguf_writer *w, const char *architecture, const struct gpt_config *c)
{
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"context_length", c->n_positions},   {"embedding_length", c->hidden_size},
        {"block_count", c->n_layers},         {"feed_forward_length", c->feed_forward_size},
        {"attention.head_count", c->n_heads}, {"attention.head_count_kv", c->n_heads},
    };
    char key[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_put_u32(w, key_of(key, architecture, rows[i].name), (uint32_t)rows[i].value);
    }
    gguf_put_f32(w, key_of(key, architecture, "attention.layer_norm_epsilon"), (float)c->norm_eps);
}

/* llama.cpp rounds the length of a context up to this (GGML_PAD in llama_context). */
enum { CONTEXT_PAD = 256 };

static void put_gpt2(struct gguf_writer *w, const void *config)
{
    const struct gpt_config *c = config;
    put_sizes(w, "gpt2", c);
    if (c->n_positions < CONTEXT_PAD) {
        log_warning("this model has %lld positions, but llama.cpp rounds a context up to %d and aborts at a "
                    "position that the file lacks: train a model of %d positions for it",
                    (long long)c->n_positions, CONTEXT_PAD, CONTEXT_PAD);
    }
    if (c->gelu == LAYER_GELU_EXACT) {
        log_warning("this model has the exact GELU (erf), but GGUF's gpt2 graph has only the tanh form: a "
                    "program that runs the file computes slightly other logits");
    }
}

static void put_bloom(struct gguf_writer *w, const void *config)
{
    put_sizes(w, "bloom", config);
}

/* llama.cpp adds the positions to the embeddings in fp32. */
static const char *const gpt2_in_f32[] = {"position_embd.weight", NULL};
static const char *const bloom_in_f32[] = {NULL};

static const struct model_family_gguf gpt2_gguf = {"gpt2", &gpt2_gguf_layout, gpt2_in_f32, put_gpt2};
static const struct model_family_gguf bloom_gguf = {"bloom", &bloom_gguf_layout, bloom_in_f32, put_bloom};

/* ---- Hugging Face's files ---- */

static const char *const none[] = {NULL};

/* Causal masks that older files hold beside the weights of each layer. */
static const char *const states[] = {"masked_bias", NULL};

static const char *const gpt2_bare[] = {"wte.", "wpe.", "h.", "ln_f.", NULL};
static const char *const gpt2_tied[][2] = {{"lm_head.weight", "transformer.wte.weight"}, {NULL, NULL}};

static const char *const bloom_bare[] = {"word_embeddings.", "word_embeddings_layernorm.", "h.", "ln_f.",
                                         NULL};
static const char *const bloom_tied[][2] = {{"lm_head.weight", "transformer.word_embeddings.weight"},
                                            {NULL, NULL}};

static const char *const gpt2_types[] = {"gpt2", NULL};
static const char *const bloom_types[] = {"bloom", NULL};

/* What both have alike. */
#define DECODER                                                                                              \
    .config_bytes = sizeof(struct gpt_config), .sizes = sizes, .set_words = set_words, .labels = labels,     \
    .same_architecture = same_architecture, .task_of = task_of, .bare_task = MODEL_TASK_ENCODER,             \
    .root = "transformer.", .tied_pattern = "lm_head.weight", .tied_part = NAMES_EMBEDDINGS,                 \
    .buffers = none, .states = states,                                                                       \
    .patterns = {[NAMES_EMBEDDINGS] = "the embeddings",                                                      \
                 [NAMES_ENCODER] = "the layers",                                                             \
                 [NAMES_BUFFER] = "buffers",                                                                 \
                 [NAMES_STATE] = "masks",                                                                    \
                 [NAMES_OTHER] = "others"}

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
    DECODER,
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
    DECODER,
};
