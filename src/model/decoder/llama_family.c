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
static const struct model_family_rename renames[] = {{NULL, NULL, false, false}};

#define LLAMA                                                                                                \
    .parse_config = parse, .config_to_json = to_json, .create = llama_model_create, .root = "model.",        \
    .bare = bare, .renames = renames, .buffers = none, .states = states,                                     \
    .words = "model.embed_tokens.weight",                                                                    \
    .parts = {                                                                                               \
        [NAMES_EMBEDDINGS] = "model.embed_tokens.", [NAMES_ENCODER] = "model.", [NAMES_MLM] = "lm_head."}

/* A relative, with the word embeddings as the decoder and with a decoder of its own. */
#define RELATIVE(type, title, classes, n_words)                                                              \
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
                                                      LLAMA,                                                 \
                                                      DECODER_FAMILY};                                       \
    const struct model_family type##_family = {.name = title,                                                \
                                               .model_types = type##_types,                                  \
                                               .usual_words = n_words,                                       \
                                               .class_of = type##_class,                                     \
                                               .tied = not_tied,                                             \
                                               LLAMA,                                                        \
                                               DECODER_FAMILY};

RELATIVE(llama, "Llama", "Llama", 32000)
RELATIVE(mistral, "Mistral", "Mistral", 32000)
RELATIVE(qwen2, "Qwen 2", "Qwen2", 151936)
