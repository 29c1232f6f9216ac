#include "service/served_models.h"

#include "core/clock.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- scratches ---- */

struct scratch_list {
    struct tokenizer_scratch scratch; /* first: a pointer to it is one to its list entry */
    struct scratch_list *next;
};

struct status served_model_take_scratch(struct served_model *m, struct tokenizer_scratch **scratch)
{
    pthread_mutex_lock(&m->lock);
    struct scratch_list *s = m->scratches;
    m->scratches = s == NULL ? NULL : s->next;
    pthread_mutex_unlock(&m->lock);
    if (s == NULL) {
        s = calloc(1, sizeof *s);
        struct status made = s == NULL ? status_error(STATUS_MEMORY, "out of memory for encoding texts")
                                       : tokenizer_scratch_init(&s->scratch, m->model.tokenizer);
        if (failed(made)) {
            free(s);
            return made;
        }
    }
    *scratch = &s->scratch;
    return status_ok();
}

void served_model_give_scratch(struct served_model *m, struct tokenizer_scratch *scratch)
{
    struct scratch_list *s = (struct scratch_list *)scratch;
    pthread_mutex_lock(&m->lock);
    s->next = m->scratches;
    m->scratches = s;
    pthread_mutex_unlock(&m->lock);
}

/* ---- a model ---- */

static void close_model(struct served_model *m)
{
    for (struct scratch_list *s; (s = m->scratches) != NULL;) {
        m->scratches = s->next;
        tokenizer_scratch_fini(&s->scratch);
        free(s);
    }
    for (int a = 0; a < SERVED_ANSWERS; a++) {
        session_close(&m->sessions[a]);
    }
    chat_template_fini(&m->chat);
    session_close(&m->model);
    pthread_mutex_destroy(&m->lock);
    free(m->name);
    free(m->path);
}

char *served_source_name(const struct served_source *source)
{
    const char *path = source->path;
    if (source->name != NULL) {
        return strdup(source->name);
    }
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    return strndup(path + begin, n - begin);
}

static struct session_options options_for(enum answer a, const struct served_models *set)
{
    struct session_options o = set->options.session;
    o.batching = a == ANSWER_FILL ? BATCHING_FEW_ASKED : BATCHING_BY_TASK; /* many texts, with a few masks */
    return o;
}

/* Opens a decoder's chat template.  One that kiln cannot read is no failure of the model. */
static struct status open_chat(struct served_model *m)
{
    if (m->model.dir.task != MODEL_TASK_CAUSAL_LM) {
        return status_ok();
    }
    m->why_no_chat = chat_template_open(&m->chat, &m->has_chat, &m->model.dir.tokenizer);
    if (failed(m->why_no_chat)) {
        m->has_chat = false;
        log_warning("%s: %s, so it answers no chat completions", m->name, m->why_no_chat.message);
    }
    return m->why_no_chat.code == STATUS_MEMORY ? m->why_no_chat : status_ok();
}

static struct status open_model(struct served_models *set, struct served_model *m,
                                const struct served_source *source)
{
    pthread_mutex_init(&m->lock, NULL);
    set->n++; /* closed from now on */
    m->path = strdup(source->path);
    m->name = served_source_name(source);
    FAIL_IF(m->path == NULL || m->name == NULL, STATUS_MEMORY, "out of memory for the name of a model");
    TRY(session_open_files(&m->model, source->path));
    TRY(open_chat(m));
    return session_plan_model(&m->plan, &m->model, &set->options.session);
}

/* The sessions of a model.  That it does not give an answer is no failure. */
static struct status plan_sessions(const struct served_models *set, struct served_model *m)
{
    for (int a = 0; a < SERVED_ANSWERS; a++) {
        struct session_options o = options_for((enum answer)a, set);
        m->why_not[a] =
            session_plan_shared(&m->plans[a], &m->model, answer_kind_of((enum answer)a)->task, &o);
        if (m->why_not[a].code == STATUS_MEMORY) {
            return m->why_not[a];
        }
    }
    return status_ok();
}

static struct status load_model(struct served_models *set, struct served_model *m)
{
    TRY(session_load_model(&m->model, &set->options.session));
    for (int a = 0; a < SERVED_ANSWERS; a++) {
        struct session_options o = options_for((enum answer)a, set);
        if (failed(m->why_not[a])) {
            continue;
        }
        TRY(session_open_shared(&m->sessions[a], &m->model, answer_kind_of((enum answer)a)->task, &o));
        TRY(text_engine_add_lane(set->engine, &m->lanes[a], &m->sessions[a]));
    }
    return status_ok();
}

/* ---- all ---- */

static struct status check_names(const struct served_models *set)
{
    for (int i = 0; i < set->n; i++) {
        for (int k = 0; k < i; k++) {
            FAIL_IF(strcmp(set->models[i].name, set->models[k].name) == 0, STATUS_USAGE,
                    "%s and %s are both served as %s: give one of them another name, --model NAME=DIR",
                    set->models[k].path, set->models[i].path, set->models[i].name);
        }
    }
    return status_ok();
}

/* Bytes of a session without the weights, which it shares. */
static size_t session_bytes(const struct network_plan *p)
{
    return p->total_bytes - p->weight_bytes - p->library_bytes;
}

static size_t planned_bytes(const struct served_models *set)
{
    size_t bytes = 0;
    for (int i = 0; i < set->n; i++) {
        const struct served_model *m = &set->models[i];
        bytes += m->plan.total_bytes;
        for (int a = 0; a < SERVED_ANSWERS; a++) {
            bytes += failed(m->why_not[a]) ? 0 : session_bytes(&m->plans[a]);
        }
    }
    return bytes;
}

/* Half of what the weights leave, in equal parts: the first decoder does not take it all. */
static size_t cache_budget(const struct served_models *set, size_t free_bytes)
{
    size_t weights = planned_bytes(set);
    int n_decoders = 0;
    for (int i = 0; i < set->n; i++) {
        n_decoders += set->models[i].model.dir.task == MODEL_TASK_CAUSAL_LM;
    }
    return free_bytes > weights && n_decoders > 0 ? (free_bytes - weights) / 2 / (size_t)n_decoders : 1;
}

static struct status plan(struct served_models *set)
{
    size_t free_bytes = set->options.session.backend.device->free_bytes();
    if (set->options.session.cache_bytes == 0) {
        set->options.session.cache_bytes = cache_budget(set, free_bytes);
    }
    for (int i = 0; i < set->n; i++) {
        TRY(plan_sessions(set, &set->models[i]));
    }
    size_t bytes = planned_bytes(set);
    return bytes <= free_bytes
               ? status_ok()
               : status_error(STATUS_MEMORY,
                              "the models need %.2f GiB, but only %.2f GiB of memory are free: serve fewer, "
                              "or with a smaller --cache_gib, --batch_size or --dtype",
                              (double)bytes / 0x1p30, (double)free_bytes / 0x1p30);
}

static struct status open_all(struct served_models *set, const struct served_source *sources, int n)
{
    set->models = calloc((size_t)n + 1, sizeof *set->models);
    FAIL_IF(set->models == NULL, STATUS_MEMORY, "out of memory for %d models", n);
    for (int i = 0; i < n; i++) {
        for (int a = 0; a < SERVED_ANSWERS; a++) {
            set->models[i].why_not[a] = status_error(STATUS_UNAVAILABLE, "it has not been planned");
        }
        TRY(open_model(set, &set->models[i], &sources[i]));
    }
    TRY(check_names(set));
    return plan(set);
}

struct status served_models_open(struct served_models **set, const struct served_source *sources, int n,
                                 const struct served_options *o)
{
    *set = calloc(1, sizeof **set);
    FAIL_IF(*set == NULL, STATUS_MEMORY, "out of memory for %d models", n);
    (*set)->options = *o;
    struct status s = open_all(*set, sources, n);
    if (failed(s)) {
        served_models_free(*set);
        *set = NULL;
    }
    return s;
}

struct status served_models_load(struct served_models *set)
{
    TRY(text_engine_create(&set->engine, &set->options.engine));
    for (int i = 0; i < set->n; i++) {
        TRY(load_model(set, &set->models[i]));
    }
    set->loaded_s = clock_wall_s();
    return text_engine_start(set->engine);
}

void served_models_describe(struct buf *out, const struct served_models *set)
{
    for (int i = 0; i < set->n; i++) {
        const struct served_model *m = &set->models[i];
        log_append_text(out, m->name);
        buf_printf(out, ": %.2f M parameters, %.1f MiB", (double)m->plan.n_params / 1e6,
                   (double)m->plan.total_bytes / 0x1p20);
        for (int a = 0; a < SERVED_ANSWERS; a++) {
            if (!failed(m->why_not[a])) {
                buf_printf(out, "; %s %.1f MiB", answer_kind_of((enum answer)a)->name,
                           (double)session_bytes(&m->plans[a]) / 0x1p20);
            }
        }
        buf_puts(out, "\n");
    }
    buf_printf(out, "all: %.1f MiB of %.1f MiB that are free\n", (double)planned_bytes(set) / 0x1p20,
               (double)set->options.session.backend.device->free_bytes() / 0x1p20);
}

void served_models_free(struct served_models *set)
{
    if (set == NULL) {
        return;
    }
    text_engine_destroy(set->engine);
    for (int i = 0; i < set->n; i++) {
        close_model(&set->models[i]);
    }
    free(set->models);
    free(set);
}

int64_t served_model_length(const struct served_model *m)
{
    return m->model.files.found ? m->model.text_length : m->model.max_length;
}

struct served_model *served_models_find(struct served_models *set, const char *name)
{
    for (int i = 0; i < set->n; i++) {
        if (strcmp(set->models[i].name, name) == 0 || strcmp(set->models[i].path, name) == 0) {
            return &set->models[i];
        }
    }
    return NULL;
}

struct served_model *served_models_first(struct served_models *set, enum answer a)
{
    for (int i = 0; i < set->n; i++) {
        if (set->models[i].lanes[a] != NULL) {
            return &set->models[i];
        }
    }
    return NULL;
}
