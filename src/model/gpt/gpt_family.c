#include "model/gpt/gpt_family.h"

#include "model/gpt/gpt_gguf.h"
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
