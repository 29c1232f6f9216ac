#include "service/served_models.h"

#include "core/clock.h"

#include <stdlib.h>
#include <string.h>

/* ---- scratches ---- */

struct scratch_list {
    struct tokenizer_scratch scratch; /* first: it stands for the whole */
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
    session_close(&m->model);
    pthread_mutex_destroy(&m->lock);
    free(m->name);
    free(m->path);
}

/* The name of a path: its last part. */
static char *name_of(const char *path)
{
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

/* A session for an answer.  That the model does not give it is no failure. */
static struct status open_answer(struct served_models *set, struct served_model *m, enum answer a,
                                 const struct served_options *o)
{
    const struct answer_kind *kind = answer_kind_of(a);
    struct session_options of = o->session;
    of.batching = a == ANSWER_FILL ? BATCHING_FEW_ASKED : BATCHING_BY_TASK; /* many texts, with a few masks */
    struct status s = session_open_shared(&m->sessions[a], &m->model, kind->task, &of);
    if (failed(s) && s.code != STATUS_MEMORY) {
        m->why_not[a] = s;
        return status_ok();
    }
    TRY(s);
    return text_engine_add_lane(set->engine, &m->lanes[a], &m->sessions[a]);
}

static struct status open_model(struct served_models *set, struct served_model *m,
                                const struct served_source *source, const struct served_options *o)
{
    pthread_mutex_init(&m->lock, NULL);
    set->n++; /* closed from now on */
    m->path = strdup(source->path);
    m->name = source->name != NULL ? strdup(source->name) : name_of(source->path);
    if (m->path == NULL || m->name == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the name of a model");
    }
    TRY(session_open_model(&m->model, source->path, &o->session));
    for (int a = 0; a < SERVED_ANSWERS; a++) {
        TRY(open_answer(set, m, (enum answer)a, o));
    }
    return status_ok();
}

/* ---- all ---- */

static struct status check_names(const struct served_models *set)
{
    for (int i = 0; i < set->n; i++) {
        for (int k = 0; k < i; k++) {
            if (strcmp(set->models[i].name, set->models[k].name) == 0) {
                return status_error(STATUS_USAGE,
                                    "%s and %s are both served as %s: give one of them another name, "
                                    "--model NAME=DIR",
                                    set->models[k].path, set->models[i].path, set->models[i].name);
            }
        }
    }
    return status_ok();
}

static struct status load(struct served_models *set, const struct served_source *sources, int n,
                          const struct served_options *o)
{
    set->models = calloc((size_t)n, sizeof *set->models);
    if (set->models == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %d models", n);
    }
    TRY(text_engine_create(&set->engine, &o->engine));
    for (int i = 0; i < n; i++) {
        TRY(open_model(set, &set->models[i], &sources[i], o));
    }
    TRY(check_names(set));
    set->loaded_s = clock_wall_s();
    return text_engine_start(set->engine);
}

struct status served_models_load(struct served_models **set, const struct served_source *sources, int n,
                                 const struct served_options *o)
{
    *set = calloc(1, sizeof **set);
    struct status s = *set == NULL ? status_error(STATUS_MEMORY, "out of memory for %d models", n)
                                   : load(*set, sources, n, o);
    if (failed(s)) {
        served_models_free(*set);
        *set = NULL;
    }
    return s;
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
