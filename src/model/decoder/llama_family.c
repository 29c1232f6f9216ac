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

/* A class for messages and "architectures" of a model that is not read from a file. */
static const char *class_of(enum model_task task)
{
    return task == MODEL_TASK_ENCODER ? "LlamaModel" : "LlamaForCausalLM";
}

static const char *const types[] = {"llama", "mistral", "qwen2", NULL};
static const char *const bare[] = {"embed_tokens.", "layers.", "norm.", NULL};
static const char *const none[] = {NULL};
static const char *const states[] = {"inv_freq", NULL}; /* frequencies of rotary positions in older files */
static const char *const tied[][2] = {{"lm_head.weight", "model.embed_tokens.weight"}, {NULL, NULL}};
static const char *const not_tied[][2] = {{NULL, NULL}};
static const struct model_family_rename renames[] = {{NULL, NULL, false, false}};

#define LLAMA                                                                                                \
    .model_types = types, .usual_words = 32000, .parse_config = parse, .config_to_json = to_json,            \
    .create = llama_model_create, .class_of = class_of, .root = "model.", .bare = bare, .renames = renames,  \
    .buffers = none, .states = states, .words = "model.embed_tokens.weight",                                 \
    .parts = {                                                                                               \
        [NAMES_EMBEDDINGS] = "model.embed_tokens.", [NAMES_ENCODER] = "model.", [NAMES_MLM] = "lm_head."}

const struct model_family tied_llama_family = {
    .name = "Llama with tied embeddings", .owns = is_tied, .tied = tied, LLAMA, DECODER_FAMILY};

const struct model_family llama_family = {.name = "Llama", .tied = not_tied, LLAMA, DECODER_FAMILY};
