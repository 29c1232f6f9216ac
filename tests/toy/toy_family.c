/* x = E[id], layers of post-norm blocks, logits = y E^T: the least that a decoder has to say. */
#include "toy_family.h"

#include "model/bert/bert_family.h"
#include "nn/config_field.h"
#include "nn/model_measures.h"
#include "nn/next_token.h"
#include "nn/text_batch_layout.h"

#include <stdlib.h>

/* ---- 1. the configuration ---- */

struct toy_config {
    int64_t vocab_size, hidden_size, n_layers, n_heads, feed_forward, max_length, n_words;
};

#define SIZE(key, field, least)                                                                              \
    {                                                                                                        \
        {key, JSON_FIELD_INT, offsetof(struct toy_config, field)}, NULL, least, 65536, true                  \
    }
static const struct config_field fields[] = {
    SIZE("vocab_size", vocab_size, 0),          SIZE("hidden_size", hidden_size, 8),
    SIZE("num_hidden_layers", n_layers, 1),     SIZE("num_attention_heads", n_heads, 1),
    SIZE("intermediate_size", feed_forward, 1), SIZE("max_position_embeddings", max_length, 1)};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* ---- 2. names of weights ---- */

#define WEIGHTS struct next_token_weights
static const struct weight_row input_rows[] = {WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "weight")};
#undef WEIGHTS

#define WEIGHTS struct block_weights
static const struct weight_row layer_rows[BLOCK_N_ROWS] = {
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "q.weight", "k.weight", "v.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "q.bias", "k.bias", "v.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, NORMAL, BY_COL, "o.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, WHOLE, "o.bias"),
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, WHOLE, "norm_1.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, WHOLE, "norm_1.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "up.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "up.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, NORMAL, BY_COL, "down.weight"),
    WEIGHT_VECTOR(ff.b_2, HIDDEN, ZERO, WHOLE, "down.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, WHOLE, "norm_2.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, WHOLE, "norm_2.bias")};

/* ---- 3. the input; the head is y E^T ---- */

static void carve_input(const struct block_model *m, void *acts, struct arena *arena,
                        struct layer_memory memory)
{
    ((struct block_stack *)acts)->in = arena_carve_2d(arena, memory.stream, memory.n_tokens, m->form.hidden);
}

/* x = E[id] */
static void input_forward(const struct model_pass *p)
{
    const struct next_token_weights *w = p->weights;
    p->x->ops->gather_rows(p->x, ((struct block_stack *)p->acts)->in, w->word, p->stream->ids);
}

static void input_backward(const struct model_pass *p, tensor dx)
{
    const struct next_token_weights *g = p->grads;
    p->x->ops->scatter_add_rows(p->x, g->word, dx, p->stream->ids);
}

/* ---- 4. the model ---- */

struct toy {
    struct block_model blocks; /* first */
    struct toy_config config;
};

static const void *config(const struct model *m)
{
    return &((const struct toy *)m)->config;
}

static json_t *config_to_json(const void *config, enum model_task task)
{
    json_t *o = json_pack("{s:s, s:[s]}", "model_type", "toy", "architectures", "ToyForCausalLM");
    (void)task;
    return o != NULL && config_fields_put(o, config, fields, N_FIELDS) ? o : (json_decref(o), NULL);
}

static json_t *to_json(const struct model *m)
{
    return config_to_json(config(m), m->task);
}

static const struct model_type toy_type = {.name = "toy",
                                           .config = config,
                                           .to_json = to_json,
                                           BLOCK_MODEL_FUNCTIONS,
                                           NEXT_TOKEN_FUNCTIONS,
                                           .input_forward = input_forward,
                                           .input_backward = input_backward};

static struct status create(struct model **model, const void *config, enum model_task task)
{
    const struct toy_config *c = config;
    struct toy *t = calloc(1, sizeof *t);
    FAIL_IF(t == NULL, STATUS_MEMORY, "out of memory for a model");
    (void)task;
    t->config = *c;
    t->blocks = (struct block_model){.model = {.type = &toy_type,
                                               .n_layers = c->n_layers,
                                               .hidden_size = c->hidden_size,
                                               .n_heads = c->n_heads,
                                               .max_length = c->max_length,
                                               .feed_forward_size = c->feed_forward,
                                               .task = MODEL_TASK_CAUSAL_LM,
                                               .vocab_size = c->vocab_size,
                                               .n_words = c->n_words,
                                               .layout = text_batch_layout,
                                               .tied = "toy.word.weight"},
                                     .form = {.norm_eps = 1e-5, .is_causal = true},
                                     .wiring = &block_post,
                                     .sizes.initializer_range = 0.1,
                                     .weight_bytes = sizeof(struct next_token_weights),
                                     .act_bytes = sizeof(struct next_token_acts),
                                     .carve_input = carve_input};
    block_model_size(&t->blocks, c->vocab_size);
    block_model_add(&t->blocks, (struct block_part){input_rows, 1, "toy.word.", MODEL_INPUT_LAYER, 0, 0});
    block_model_add(&t->blocks,
                    (struct block_part){layer_rows, BLOCK_N_ROWS, "toy.layer.", BLOCK_EVERY_LAYER, 0, 0});
    model_add_measure(&t->blocks.model, MEASURE_NEXT_TOKEN, TEXT_MASKED_LABELS);
    *model = &t->blocks.model;
    return status_ok();
}

/* ---- 5. the family ---- */
static struct status parse_config(void *config, const json_t *object, const char *source)
{
    struct toy_config *c = config;
    *c = (struct toy_config){0};
    TRY(config_fields_parse(c, fields, N_FIELDS, true, object, source));
    return c->hidden_size % c->n_heads == 0
               ? status_ok()
               : status_error(STATUS_DATA, "%s: a width of %lld does not divide into %lld heads", source,
                              (long long)c->hidden_size, (long long)c->n_heads);
}

static struct model_family_sizes sizes(const void *config)
{
    const struct toy_config *c = config;
    return (struct model_family_sizes){
        c->vocab_size, c->max_length, c->n_layers, {c->n_heads, c->hidden_size / c->n_heads, 0}, 1e-5, true};
}

static void set_words(void *config, int64_t vocab_size, int64_t n_words)
{
    struct toy_config *c = config;
    c->vocab_size = vocab_size;
    c->n_words = n_words;
}

static struct status same_architecture(const void *a, const void *b)
{
    return config_fields_same(a, b, fields + 1, N_FIELDS - 1); /* vocabularies may differ */
}

static const char *class_of(enum model_task task)
{
    return task == MODEL_TASK_CAUSAL_LM ? "ToyForCausalLM" : NULL;
}

const struct model_family toy_family = {
    .name = "toy",
    .model_types = (const char *const[]){"toy", NULL},
    .config_bytes = sizeof(struct toy_config),
    .usual_words = 64,
    .parse_config = parse_config,
    .config_to_json = config_to_json,
    .sizes = sizes,
    .set_words = set_words,
    .create = create,
    .same_architecture = same_architecture,
    .class_of = class_of,
    .bare_task = MODEL_TASK_ENCODER,
    .root = "toy.",
    .words = "toy.word.weight",
    .parts = {[NAMES_EMBEDDINGS] = "toy.word.", [NAMES_ENCODER] = "toy.layer."},
};

/* ---- 6. the table of families, in the place of model/model_families.c ---- */
const struct model_family *const model_families[] = {&bert_family, &toy_family, NULL};
