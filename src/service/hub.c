/* hub: `POST /` as huggingface_hub's InferenceClient(model=URL) sends it, to a server or to /models/NAME.
 * Most tasks send the same {"inputs": text}, so the head of the model decides between them; the shape of the
 * inputs does so only where a model can do two things. TEI's clients send the same path, for vectors and for
 * ranks. */
#include "serve/fill_mask.h"
#include "service/embedding_call.h"
#include "service/endpoints.h"
#include "service/hub_tasks.h"

#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

bool hub_is_list(const struct call *c)
{
    return json_is_array(json_object_get(c->body, "inputs"));
}

size_t hub_count(struct call *c, size_t most)
{
    size_t n = hub_is_list(c) ? json_array_size(json_object_get(c->body, "inputs")) : 1;
    if (n == 0 || n > most) {
        call_fail_value(c, "inputs", "\"inputs\" is a list of %zu; it may have 1 to %zu", n, most);
        return 0;
    }
    return n;
}

const json_t *hub_input(const struct call *c, size_t i)
{
    const json_t *inputs = json_object_get(c->body, "inputs");
    return hub_is_list(c) ? json_array_get(inputs, i) : inputs;
}

/* ---- jobs ---- */

struct jobs {
    const struct hub_job_kind *kind;
    size_t n;
    char *jobs;                /* [n] of the kind's bytes */
    struct request **requests; /* [n] */
    int64_t own;
};

static void *job_of(const struct jobs *h, size_t i)
{
    return h->jobs + i * h->kind->job_bytes;
}

static void free_jobs(void *state)
{
    struct jobs *h = state;
    for (size_t i = 0; h->jobs != NULL && i < h->n; i++) {
        h->kind->fini(job_of(h, i));
    }
    free(h->jobs);
    free(h->requests);
    free(h);
}

static void finish(struct call *c)
{
    const struct jobs *h = c->state;
    json_t *results = json_array(), *result = NULL;
    struct status s = status_ok();
    for (size_t i = 0; i < h->n && !failed(s); i++) {
        s = h->kind->read(&result, c, job_of(h, i), hub_input(c, i), h->own);
        if (!failed(s)) {
            json_array_append_new(results, result);
        }
    }
    if (failed(s)) {
        json_decref(results);
        call_fail_status(c, NULL, s);
        return;
    }
    if (!hub_is_list(c)) {
        result = json_incref(json_array_get(results, 0));
        json_decref(results);
        results = result;
    }
    call_add_headers(c);
    call_reply(c, results);
}

static struct status make_jobs(struct call *c, struct jobs *h, const void *options)
{
    struct tokenizer_scratch *scratch;
    h->jobs = calloc(h->n, h->kind->job_bytes);
    h->requests = calloc(h->n, sizeof(void *));
    FAIL_IF(h->jobs == NULL || h->requests == NULL, STATUS_MEMORY, "out of memory for %zu inputs", h->n);
    TRY(served_model_take_scratch(c->model, &scratch));
    struct status s = status_ok();
    for (size_t i = 0; i < h->n && !failed(s); i++) {
        s = h->kind->make(c, job_of(h, i), hub_input(c, i), scratch, options);
        h->requests[i] = job_of(h, i);
    }
    served_model_give_scratch(c->model, scratch);
    return s;
}

void hub_submit(struct call *c, const struct hub_job_kind *kind, size_t n, const void *options, int64_t own)
{
    struct jobs *h = call_make_state(c, sizeof *h, free_jobs);
    if (h == NULL) {
        return;
    }
    *h = (struct jobs){.kind = kind, .n = n, .own = own};
    struct status s = make_jobs(c, h, options);
    if (failed(s)) {
        call_fail_status(c, "inputs", s);
        return;
    }
    c->n_texts = (int64_t)n;
    call_submit_requests(c, kind->answer, h->requests, c->n_texts, finish);
}

/* ---- vectors ---- */

/* The options are next to "inputs", not under "parameters". */
static void answer_features(struct call *c)
{
    struct embedding_call *e = embedding_call_make(c);
    if (e != NULL && embedding_call_read_options(e, c->body)) {
        e->answer = embedding_call_reply_list;
        embedding_call_start(e, NULL, json_object_get(c->body, e->key));
    }
}

static void answer_similarity(struct call *c)
{
    const json_t *parameters;
    struct embedding_call *e = embedding_call_make(c);
    if (e != NULL && call_object(c, c->body, "parameters", &parameters) &&
        embedding_call_read_options(e, parameters)) {
        embedding_call_compare(e, json_object_get(c->body, "inputs"));
    }
}

/* ---- which task ---- */

struct hub_task {
    enum answer head;
    void (*answer)(struct call *c);
    const char *key; /* key of the object "inputs" that only this task has; NULL: its inputs are texts */
};

static const struct hub_task ask = {ANSWER_ASK, hub_ask_answer, "question"},
                             compare = {ANSWER_EMBED, answer_similarity, "source_sentence"},
                             classify = {ANSWER_CLASSIFY, hub_classify_answer, "text"},
                             classify_by = {ANSWER_CLASSIFY, hub_classify_answer_labels, NULL},
                             fill = {ANSWER_FILL, hub_fill_answer, NULL},
                             tag = {ANSWER_TAG, hub_tag_answer, NULL},
                             features = {ANSWER_EMBED, answer_features, NULL},
                             complete = {ANSWER_GENERATE, tgi_answer, NULL};

/* The task that the shape of the request names; NULL: many have it. */
static const struct hub_task *task_of_shape(const struct call *c)
{
    static const struct hub_task *const shaped[] = {&ask, &compare, &classify};
    const json_t *inputs = json_object_get(c->body, "inputs");
    const json_t *first = json_is_array(inputs) ? json_array_get(inputs, 0) : inputs;
    for (size_t i = 0; i < sizeof shaped / sizeof shaped[0]; i++) {
        if (json_object_get(first, shaped[i]->key) != NULL) {
            return shaped[i];
        }
    }
    bool by = json_object_get(json_object_get(c->body, "parameters"), "candidate_labels") != NULL;
    return by ? &classify_by : NULL;
}

/* Whether a text has a mask.  The client of feature extraction sends no parameters, that of masks does. */
static bool asks_for_words(const struct call *c, const struct tokenizer *t)
{
    const json_t *inputs = json_object_get(c->body, "inputs");
    const char *text = json_string_value(json_is_array(inputs) ? json_array_get(inputs, 0) : inputs);
    return json_object_get(c->body, "parameters") != NULL ||
           (text != NULL && fill_mask_is_in(t, text, strlen(text)));
}

static const struct hub_task *task_of_model(const struct call *c, const struct served_model *m)
{
    switch (m->model.dir.task) {
    case MODEL_TASK_CAUSAL_LM: return &complete;
    case MODEL_TASK_QUESTION_ANSWERING: return &ask;
    case MODEL_TASK_SEQUENCE_CLASSIFICATION: return &classify;
    case MODEL_TASK_TOKEN_CLASSIFICATION: return &tag;
    case MODEL_TASK_MASKED_LM:
    case MODEL_TASK_PRETRAINING:
        return !m->model.files.found && asks_for_words(c, m->model.tokenizer) ? &fill : &features;
    case MODEL_TASK_ENCODER: break;
    }
    return &features;
}

static void answer(struct call *c)
{
    if (json_object_get(c->body, "query") != NULL && json_object_get(c->body, "texts") != NULL) {
        c->dialect = &dialect_tei;
        rerank_answer_tei(c);
        return;
    }
    const struct hub_task *task = task_of_shape(c);
    if (json_object_get(c->body, "inputs") == NULL) {
        call_fail_value(c, "inputs", "\"inputs\" is missing");
        return;
    }
    struct served_model *m = call_any_model(c, NULL);
    if (m == NULL) {
        return;
    }
    task = task != NULL ? task : task_of_model(c, m);
    if (call_model(c, NULL, task->head) != NULL) {
        task->answer(c);
    }
}

const struct endpoint hub_endpoints[] = {
    {"POST", "/", &dialect_hub, answer, .is_open = false},
    {0},
};
