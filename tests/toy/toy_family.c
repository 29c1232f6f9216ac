#include "toy_family.h"

#include "toy_model.h"

#include <stdlib.h>

/* ---- 5. files ---- */

static const char *const model_types[] = {"toy", NULL};

static struct status parse_config(void *config, const json_t *object, const char *source)
{
    struct toy_config *c = config;
    *c = (struct toy_config){0};
    TRY(json_get_int(object, source, "vocab_size", false, &c->vocab_size));
    TRY(json_get_int(object, source, "hidden_size", true, &c->hidden_size));
    TRY(json_get_int(object, source, "intermediate_size", true, &c->intermediate_size));
    TRY(json_get_int(object, source, "max_position_embeddings", true, &c->max_position_embeddings));
    return c->hidden_size > 0 && c->intermediate_size > 0 && c->max_position_embeddings > 0
               ? status_ok()
               : status_error(STATUS_DATA, "%s: a size is below 1", source);
}

static json_t *config_to_json(const void *config, enum model_task task)
{
    struct model *m;
    if (failed(toy_model_create(&m, config, task))) {
        return NULL;
    }
    json_t *object = m->type->to_json(m);
    free(m);
    return object;
}

static struct model_family_sizes sizes(const void *config)
{
    const struct toy_config *c = config;
    return (struct model_family_sizes){c->vocab_size, c->max_position_embeddings, 1, 1, 0, false};
}

static void set_words(void *config, int64_t vocab_size, int64_t n_words)
{
    struct toy_config *c = config;
    c->vocab_size = vocab_size;
    c->n_words = n_words;
}

static struct model_labels *labels(void *config)
{
    return &((struct toy_config *)config)->labels;
}

static struct status same_architecture(const void *a, const void *b)
{
    const struct toy_config *x = a, *y = b;
    return x->hidden_size == y->hidden_size && x->intermediate_size == y->intermediate_size &&
                   x->max_position_embeddings == y->max_position_embeddings
               ? status_ok()
               : status_error(STATUS_DATA, "the sizes differ");
}

static const char *class_of(enum model_task task)
{
    return task == MODEL_TASK_CAUSAL_LM ? "ToyForCausalLM" : NULL;
}

static enum model_task task_of(const bool has[NAMES_N_PARTS], const json_t *config)
{
    (void)has, (void)config;
    return MODEL_TASK_CAUSAL_LM;
}

static const char *const none[] = {NULL};
static const char *const no_copies[][2] = {{NULL, NULL}};
static const struct model_family_rename no_renames[] = {{NULL, NULL, false, false}};

const struct model_family toy_family = {
    .name = "toy",
    .model_types = model_types,
    .config_bytes = sizeof(struct toy_config),
    .usual_words = 64,
    .parse_config = parse_config,
    .config_to_json = config_to_json,
    .sizes = sizes,
    .set_words = set_words,
    .labels = labels,
    .create = toy_model_create,
    .same_architecture = same_architecture,
    .class_of = class_of,
    .task_of = task_of,
    .bare_task = MODEL_TASK_ENCODER,
    .root = "toy.",
    .bare = none,
    .renames = no_renames,
    .tied = no_copies,
    .tied_pattern = "",
    .tied_part = NAMES_MLM,
    .buffers = none,
    .states = none,
    .words = "toy.embeddings.word_embeddings.weight",
    .parts = {[NAMES_EMBEDDINGS] = "toy.embeddings.", [NAMES_ENCODER] = "toy.layer."},
    .patterns = {[NAMES_EMBEDDINGS] = "toy.embeddings.*",
                 [NAMES_ENCODER] = "toy.layer.*",
                 [NAMES_BUFFER] = "buffers",
                 [NAMES_STATE] = "states",
                 [NAMES_OTHER] = "others"},
};
