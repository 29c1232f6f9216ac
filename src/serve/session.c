#include "serve/session.h"

#include "core/integers.h"
#include "core/log.h"
#include "data/text_batch.h"
#include "model/model_place.h"
#include "nn/label_names.h"
#include "serve/int8_check.h"

#include <stdlib.h>
#include <string.h>

/* Tokens of a batch: on the CPU the activations of so many stay in a core's caches; a GPU has a hundred
 * processors to keep busy. */
enum { HOST_BATCH_TOKENS = 1024, DEVICE_BATCH_TOKENS = 16384 };

/* Tokens of prompts that are computed in a step, while other texts wait for their next token. */
enum { PROMPT_TOKENS = 512 };

struct session_options session_defaults(void)
{
    return (struct session_options){.backend = {&device_cpu, ops_cpu()}, .dtype = DTYPE_F32};
}

struct status session_options_find(struct session_options *o, const char *device, const char *dtype)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
    *o = session_defaults();
    TRY(backend_find(&o->backend, device));
    if (strcmp(dtype, dtype_name(DTYPE_I8)) == 0) {
        o->dtype = DTYPE_BF16;
        o->int8 = true;
        return o->backend.device->multiplies_int8
                   ? status_ok()
                   : status_error(STATUS_USAGE,
                                  "the device %s does not multiply matrices in int8: use fp32, bf16 or fp16",
                                  o->backend.device->name);
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(dtype, dtype_name(dtypes[i])) != 0) {
            continue;
        }
        o->dtype = dtypes[i];
        return o->dtype != DTYPE_F16 || o->backend.device->computes_in_f16
                   ? status_ok()
                   : status_error(STATUS_USAGE, "the device %s does not compute in fp16: use fp32 or bf16",
                                  o->backend.device->name);
    }
    return status_error(STATUS_USAGE, "unknown dtype %.40s: it must be fp32, bf16, fp16 or int8", dtype);
}

static int64_t batch_tokens_on(const struct device *device)
{
    return device->is_host ? HOST_BATCH_TOKENS : DEVICE_BATCH_TOKENS;
}

static bool is_masked(enum model_task task)
{
    return task == MODEL_TASK_MASKED_LM || task == MODEL_TASK_PRETRAINING;
}

/* Whether texts are continued token by token. */
static bool caches(enum model_task task, const struct session_options *o)
{
    return task == MODEL_TASK_CAUSAL_LM && o->batching == BATCHING_BY_TASK;
}

static int64_t prompts_of(const struct session_options *o)
{
    return o->n_prompts > 0 ? o->n_prompts : SESSION_PROMPTS;
}

static int64_t pages_of(int64_t n_tokens)
{
    return (n_tokens + BATCH_PAGE - 1) / BATCH_PAGE;
}

/* Limits of a step of all texts: parts of prompts, and one token of each of the others; of a prompt that is
 * rated, RATED_TOKENS at most. */
static struct batch_limits cached_limits(int64_t length, const struct session_options *o)
{
    enum { RATED_TOKENS = 128 };
    int64_t n = prompts_of(o), least = n > PROMPT_TOKENS ? n : PROMPT_TOKENS;
    return (struct batch_limits){.n_tokens = int_round_up(least, BATCH_TOKEN_BUCKET),
                                 .n_sequences = n + 1,
                                 .n_labels = int_round_up(int_larger(n, RATED_TOKENS), BATCH_LABEL_BUCKET),
                                 .max_seqlen = length,
                                 .n_pages = pages_of(length)};
}

/* With a mask in each text, logits are most of the memory: their number suits texts of MASKED_TEXT_TOKENS; a
 * batch of shorter ones is smaller. */
static struct batch_limits limits_of(int64_t length, enum model_task task, int64_t batch_tokens,
                                     const struct session_options *o)
{
    enum { MASKED_TEXT_TOKENS = 8, MOST_LABELS = 64 };
    if (caches(task, o)) {
        return cached_limits(length, o);
    }
    if (is_masked(task) && o->batching == BATCHING_BY_TASK) {
        return text_batch_limits(1, length, length);
    }
    struct batch_limits limits = packer_limits(batch_tokens, length);
    if (task == MODEL_TASK_CAUSAL_LM && o->batching == BATCHING_LOSSES) {
        limits.n_labels = int_round_up(limits.n_tokens, BATCH_LABEL_BUCKET);
    } else if (task == MODEL_TASK_CAUSAL_LM) { /* logits of a few words of each text */
        limits.n_labels = int_round_up(MOST_LABELS, BATCH_LABEL_BUCKET);
        limits.n_sequences = limits.n_labels + 1;
    }
    if (is_masked(task)) {
        limits.n_labels = int_round_up(limits.n_tokens / MASKED_TEXT_TOKENS, BATCH_LABEL_BUCKET);
        limits.n_sequences = limits.n_labels + 1;
    }
    return limits;
}

/* A caller may ask for vectors of longer texts than the model's files say. */
static int64_t length_for(enum model_task task, int64_t positions, int64_t max_length)
{
    return task == MODEL_TASK_ENCODER ? positions : max_length;
}

static struct batch_limits limits_in(const struct model_dir *m, enum model_task task,
                                     const struct session_options *o)
{
    return limits_of(length_for(task, model_dir_sizes(m).max_length, m->max_length), task,
                     batch_tokens_on(o->backend.device), o);
}

/* Ranks with slices of a model have the same pages, whatever memory each of them has. */
static int64_t cache_pages_of(const struct model *model, int64_t longest, const struct session_options *o)
{
    int64_t n_slices = o->peers != NULL ? o->peers->size : 1, all = prompts_of(o) * longest;
    size_t page =
        2 * BATCH_PAGE * (size_t)(model->n_layers * model->kv_width / n_slices) * dtype_bytes(o->dtype);
    size_t budget = o->cache_bytes > 0 ? o->cache_bytes
                    : n_slices > 1     ? SIZE_MAX
                                       : o->backend.device->free_bytes() / 2;
    int64_t fit = budget / page < (size_t)all ? (int64_t)(budget / page) : all;
    return int_larger(fit, longest);
}

/* Layers of an encoder are in int8 and all else in fp32, where that is faster; of a decoder all else is in
 * bf16. */
static struct precision precision_of(const struct model *model, const struct session_options *o)
{
    struct precision p = {.dtype = o->dtype, .int8 = o->int8};
    if (o->int8 && model->type->int8 == MODEL_INT8_LAYERS) {
        p.dtype = DTYPE_F32;
        p.int8 = ops_cpu_multiplies_int8();
    }
    return p;
}

static struct network_config config_of(const struct model *model, struct batch_limits limits,
                                       const struct session_options *o)
{
    const struct peers *p = o->peers;
    return (struct network_config){
        .model = model,
        .device = o->backend.device,
        .ops = o->backend.ops,
        .precision = precision_of(model, o),
        .limits = limits,
        .part = {.slice = p != NULL ? p->rank : 0, .n_slices = p != NULL ? p->size : 0},
        .peers = p,
        .whole_logits = o->batching != BATCHING_LOSSES,
        .losses_only = o->batching == BATCHING_LOSSES,
        .cache_pages = limits.n_pages > 0 ? cache_pages_of(model, limits.n_pages, o) : 0,
    };
}

/* The length by the file for sentences, else by the tokenizer's, at most the model's positions. */
static int64_t text_length_of(const struct sentence_model *s, const struct model_dir *m)
{
    int64_t positions = model_dir_sizes(m).max_length;
    int64_t length = s->max_length > 0 ? s->max_length : m->max_length;
    return length < positions ? length : positions;
}

/* A decoder reads the text alone. */
static struct status init_scratch(struct session *s, enum model_task task)
{
    if (task != MODEL_TASK_CAUSAL_LM) {
        TRY(tokenizer_frame(&s->frame, s->tokenizer, "the input of the model"));
    }
    return tokenizer_scratch_init(&s->scratch, s->tokenizer);
}

/* Opens the model's files.  For vectors, the files of the sentence model name the directory of the
 * transformer. */
static struct status open_dir(struct session *s, const char *path, enum model_task task,
                              const struct session_options *o)
{
    if (task == MODEL_TASK_ENCODER) {
        TRY(sentence_model_open(&s->files, path));
        path = s->files.transformer;
    }
    return model_dir_open_given(&s->dir, path, o->given);
}

/* Other heads may be new, or lack tensors that are named; a decoder's is its word embeddings, which all
 * models have, and a decoder has no other. */
static struct status check_decoder(const struct model_dir *m, enum model_task task)
{
    if (m->task == task || (m->task != MODEL_TASK_CAUSAL_LM && task != MODEL_TASK_CAUSAL_LM) ||
        task == MODEL_TASK_ENCODER) {
        return status_ok();
    }
    return answer_kind_explain(
        status_error(STATUS_DATA, "%s holds a %s, which %s", m->path, m->family->class_of(m->task),
                     m->task != MODEL_TASK_CAUSAL_LM ? "does not predict the next word"
                     : task == MODEL_TASK_MASKED_LM  ? "predicts the next word, and no masked ones"
                                                     : "only predicts the next word"),
        m->task, task);
}

/* Says what int8 does to the answers of an encoder, or that it is not used. */
static struct status check_int8(const struct session *s, enum model_task task,
                                const struct session_options *o)
{
    if (!o->int8 || s->model->type->int8 != MODEL_INT8_LAYERS) {
        return status_ok();
    }
    if (!s->net.config.precision.int8) {
        log_warning(
            "int8: this processor has no instructions for it (VNNI or AMX with AVX-512), so the model "
            "is computed in fp32, which is faster");
        return status_ok();
    }
    return int8_check(&s->dir, task);
}

static struct status load(struct session *s, enum model_task task, const struct session_options *o)
{
    struct load_report report;
    unsigned may_be_new = task == MODEL_TASK_ENCODER ? 1U << NAMES_POOLER : 0;
    TRY(network_files_load(&s->net, &s->dir, task, may_be_new, o->watch, &report));
    if (!load_report_is_plain(&report)) {
        load_report_print(&report, s->dir.path);
    }
    TRY(check_int8(s, task, o));
    model_files_close(&s->dir.files);
    return status_ok();
}

static void read_activation(struct cross_encoder *c, const json_t *config, const char *path)
{
    const json_t *ours = json_object_get(config, "sentence_transformers");
    const char *name = json_string_value(json_object_get(ours, "activation_fn"));
    if (name == NULL) {
        name = json_string_value(json_object_get(config, "sbert_ce_default_activation_function"));
    }
    if (name != NULL && !sentence_activation_find(&c->activation, name)) {
        log_warning("%s: the activation %.80s is unknown here: scores of pairs are those of a sigmoid", path,
                    name);
    }
}

/* Reads the config.json of a model's directory, which may have none. An activation that kiln does not know is
 * a warning, and a sigmoid. */
static struct status cross_encoder_read(struct cross_encoder *c, const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    json_t *config;
    *c = (struct cross_encoder){.activation = SENTENCE_SIGMOID};
    if (!model_place_find_config(path, directory)) {
        return status_ok();
    }
    TRY(json_read_object(&config, path));
    read_activation(c, config, path);
    const char *problem = json_string_value(json_object_get(config, "problem_type"));
    c->is_regression = problem != NULL && strcmp(problem, label_problem_name(PROBLEM_REGRESSION)) == 0;
    json_decref(config);
    return status_ok();
}

/* Opens what the files say without the weights. */
static struct status describe(struct session *s, enum model_task task)
{
    s->tokenizer = &s->dir.tokenizer;
    s->max_length = s->dir.max_length;
    s->sentence = &s->files;
    s->text_length = text_length_of(&s->files, &s->dir);
    TRY(cross_encoder_read(&s->scores, s->dir.place.directory));
    TRY(init_scratch(s, task));
    return s->dir.family->create(&s->model, s->dir.config, task);
}

static struct status open_network(struct session *s, enum model_task task, struct batch_limits limits,
                                  const struct session_options *o)
{
    s->batch_tokens = batch_tokens_on(o->backend.device);
    FAIL_IF(o->n_layers > s->model->n_layers, STATUS_USAGE, "layer %lld of a model of %lld layers",
            (long long)o->n_layers, (long long)s->model->n_layers);
    s->model->n_layers = o->n_layers > 0 ? o->n_layers : s->model->n_layers;
    struct network_config config = config_of(s->model, limits, o);
    TRY(network_init(&s->net, &config));
    return load(s, task, o);
}

static struct status init_packer(struct session *s)
{
    TRY(page_pool_init(&s->pages, s->net.config.cache_pages));
    TRY(packer_init(&s->packer, &s->net, s->net.config.limits, tokenizer_tail_id(s->tokenizer),
                    packer_outputs(&s->net)));
    s->packer.n_tokens = int_smaller(s->tokenizer->n, s->packer.n_tokens);
    return status_ok();
}

struct status session_open(struct session *s, const char *path, enum model_task task,
                           const struct session_options *o)
{
    *s = (struct session){0};
    struct status status = open_dir(s, path, task, o);
    status = failed(status) ? status : check_decoder(&s->dir, task);
    if (!failed(status)) {
        status = describe(s, task);
        status = failed(status) ? status : open_network(s, task, limits_in(&s->dir, task, o), o);
        status = answer_kind_explain(status, s->dir.task, task);
    }
    if (!failed(status)) {
        status = init_packer(s);
    }
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

struct status session_open_files(struct session *s, const char *path)
{
    *s = (struct session){0};
    s->sentence_status = sentence_model_open(&s->files, path);
    struct status status = model_dir_open(&s->dir, failed(s->sentence_status) ? path : s->files.transformer);
    status = failed(status) ? status : describe(s, s->dir.task);
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

/* Texts are read by the sessions over the model. */
static struct batch_limits model_limits(void)
{
    return text_batch_limits(1, 1, 0);
}

struct status session_load_model(struct session *s, const struct session_options *o)
{
    struct status status = open_network(s, s->dir.task, model_limits(), o);
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

struct status session_open_model(struct session *s, const char *path, const struct session_options *o)
{
    TRY(session_open_files(s, path));
    return session_load_model(s, o);
}

/* A failure that says what the model cannot do. */
static struct status no_head(const struct model_dir *m, enum model_task task)
{
    const char *is = m->family->class_of(m->task), *wanted = m->family->class_of(task);
    FAIL_IF(m->task == MODEL_TASK_CAUSAL_LM, STATUS_DATA,
            "the model is a %s, which only predicts the next word", is);
    FAIL_IF(wanted == NULL, STATUS_DATA, "the model is a %s, which does not predict the next word", is);
    return status_error(STATUS_DATA, "the model is a %s and has no head of a %s", is, wanted);
}

/* The task to open for a wanted one: a model without a pooler keeps its own task for sentence vectors, since
 * these are taken below the heads. */
static struct status task_on(enum model_task *task, const struct model_dir *m)
{
    if (!answer_kind_fits(m->task, *task)) {
        return answer_kind_explain(no_head(m, *task), m->task, *task);
    }
    *task = *task == MODEL_TASK_ENCODER && m->task != MODEL_TASK_PRETRAINING ? m->task : *task;
    return status_ok();
}

/* Limits and task of a session over the model. */
static struct status shape_over(struct batch_limits *limits, enum model_task *task,
                                const struct session *model, const struct session_options *o)
{
    *limits = limits_in(&model->dir, *task, o);
    if (*task == MODEL_TASK_ENCODER) {
        TRY(model->sentence_status);
    }
    return task_on(task, &model->dir);
}

/* The options, with the device and the dtype of weights that are there. */
static struct session_options options_over(const struct network *owner, struct session_options o)
{
    o.backend = (struct backend){owner->config.device, owner->config.ops};
    o.dtype = owner->config.precision.dtype;
    o.int8 = owner->config.precision.int8;
    return o;
}

static struct status open_over(struct session *s, const struct session_weights *w, enum model_task task,
                               struct batch_limits limits, const struct session_options *o)
{
    TRY(w->family->create(&s->model, w->config, task));
    struct network_config config = config_of(s->model, limits, o);
    TRY(init_scratch(s, task));
    TRY(network_init_shared(&s->net, &config, w->net));
    return init_packer(s);
}

static struct status open_over_model(struct session *s, const struct session *model, enum model_task task,
                                     struct session_options o)
{
    const struct session_weights w = {&model->net, model->dir.family, model->dir.config, model->tokenizer};
    struct batch_limits limits;
    o = options_over(w.net, o);
    TRY(shape_over(&limits, &task, model, &o));
    return open_over(s, &w, task, limits, &o);
}

struct status session_open_shared(struct session *s, const struct session *model, enum model_task task,
                                  const struct session_options *o)
{
    *s = (struct session){.tokenizer = model->tokenizer,
                          .max_length = model->max_length,
                          .text_length = model->text_length,
                          .sentence = &model->files,
                          .scores = model->scores,
                          .batch_tokens = model->batch_tokens};
    struct status status = open_over_model(s, model, task, *o);
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

struct status session_open_weights(struct session *s, const struct session_weights *w, enum model_task task,
                                   const struct session_options *o)
{
    const struct session_options over = options_over(w->net, *o);
    int64_t length = w->family->sizes(w->config).max_length, tokens = batch_tokens_on(over.backend.device);
    *s = (struct session){.tokenizer = w->tokenizer,
                          .max_length = length,
                          .text_length = length,
                          .sentence = &s->files,
                          .batch_tokens = tokens};
    struct status status = open_over(s, w, task, limits_of(length, task, tokens, &over), &over);
    if (failed(status)) {
        session_close(s);
    }
    return status;
}

void session_close(struct session *s)
{
    packer_fini(&s->packer);
    page_pool_fini(&s->pages);
    network_fini(&s->net);
    free(s->model);
    tokenizer_scratch_fini(&s->scratch);
    model_dir_close(&s->dir);
    sentence_model_close(&s->files);
    *s = (struct session){0};
}

static struct status plan(struct network_plan *p, const struct model_dir *m, enum model_task task,
                          struct batch_limits limits, const struct session_options *o)
{
    struct model *model;
    TRY(m->family->create(&model, m->config, task));
    struct network_config config = config_of(model, limits, o);
    struct status s = network_plan(p, &config);
    free(model);
    return s;
}

struct status session_plan(struct network_plan *p, const char *path, enum model_task task,
                           const struct session_options *o)
{
    struct session s = {0};
    struct status status = open_dir(&s, path, task, o);
    status = failed(status) ? status : check_decoder(&s.dir, task);
    if (!failed(status)) {
        status = plan(p, &s.dir, task, limits_in(&s.dir, task, o), o);
    }
    session_close(&s);
    return status;
}

struct status session_plan_model(struct network_plan *p, const struct session *model,
                                 const struct session_options *o)
{
    return plan(p, &model->dir, model->dir.task, model_limits(), o);
}

struct status session_plan_shared(struct network_plan *p, const struct session *model, enum model_task task,
                                  const struct session_options *o)
{
    struct batch_limits limits;
    TRY(shape_over(&limits, &task, model, o));
    return plan(p, &model->dir, task, limits, o);
}
