/* hub: `POST /` as huggingface_hub's InferenceClient(model=URL) sends it, to a server or to /models/NAME.
 * Most tasks send the same {"inputs": text}, so the head of the model decides between them; the shape of the
 * inputs does so only where a model can do two things. TEI's clients send the same path, for vectors and for
 * ranks. */
#include "service/answer_headers.h"
#include "service/embedding_call.h"
#include "service/endpoints.h"
#include "service/hub_tasks.h"

#include <stdlib.h>
#include <string.h>

bool hub_read_parameters(struct call *c, const json_t **parameters)
{
    *parameters = NULL;
    return call_object(c, c->body, "parameters", parameters);
}

/* ---- jobs ---- */

static void free_jobs(void *state)
{
    struct hub_jobs *h = state;
    for (size_t i = 0; h->jobs != NULL && i < h->n; i++) {
        h->fini(hub_job(h, i));
    }
    free(h->jobs);
    free(h->requests);
    free(h);
}

struct hub_jobs *hub_jobs_make(struct call *c, size_t job_bytes, void (*fini)(void *job))
{
    const json_t *inputs = json_object_get(c->body, "inputs");
    size_t n = json_is_array(inputs) ? json_array_size(inputs) : 1;
    if (n == 0 || n > HUB_INPUTS) {
        call_fail_value(c, "inputs", "\"inputs\" is a list of %zu; it may have 1 to %d", n, HUB_INPUTS);
        return NULL;
    }
    struct hub_jobs *h = calloc(1, sizeof *h);
    if (h != NULL) {
        *h = (struct hub_jobs){.is_list = json_is_array(inputs),
                               .n = n,
                               .job_bytes = job_bytes,
                               .jobs = calloc(n, job_bytes),
                               .fini = fini,
                               .requests = calloc(n, sizeof(void *))};
        c->state = h;
        c->free_state = free_jobs;
    }
    if (h == NULL || h->jobs == NULL || h->requests == NULL) {
        call_fail(c, 503, NULL, "out of memory for %zu inputs", n);
        return NULL;
    }
    return h;
}

const json_t *hub_input(const struct call *c, const struct hub_jobs *h, size_t i)
{
    const json_t *inputs = json_object_get(c->body, "inputs");
    return h->is_list ? json_array_get(inputs, i) : inputs;
}

void *hub_job(const struct hub_jobs *h, size_t i)
{
    return h->jobs + i * h->job_bytes;
}

void hub_submit(struct call *c, enum answer a,
                struct status (*make)(struct call *c, void *job, const json_t *input,
                                      struct tokenizer_scratch *scratch, const void *options),
                const void *options, void (*finish)(struct call *c))
{
    struct hub_jobs *h = c->state;
    struct tokenizer_scratch *scratch;
    struct status s = served_model_take_scratch(c->model, &scratch);
    if (!failed(s)) {
        for (size_t i = 0; i < h->n && !failed(s); i++) {
            s = make(c, hub_job(h, i), hub_input(c, h, i), scratch, options);
            h->requests[i] = hub_job(h, i);
        }
        served_model_give_scratch(c->model, scratch);
    }
    if (failed(s)) {
        call_fail_status(c, "inputs", s);
        return;
    }
    c->n_texts = (int64_t)h->n;
    c->work = (struct work){.lane = c->model->lanes[a],
                            .requests = h->requests,
                            .n_requests = (int64_t)h->n,
                            .n_tokens = c->n_tokens};
    call_submit(c, finish);
}

void hub_reply(struct call *c, json_t *results)
{
    const struct hub_jobs *h = c->state;
    json_t *reply = h->is_list ? results : json_incref(json_array_get(results, 0));
    if (!h->is_list) {
        json_decref(results);
    }
    answer_headers_add(c);
    call_reply(c, reply);
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
    if (e != NULL && hub_read_parameters(c, &parameters) && embedding_call_read_options(e, parameters)) {
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
static bool asks_for_words(const struct call *c)
{
    const json_t *inputs = json_object_get(c->body, "inputs");
    const char *text = json_string_value(json_is_array(inputs) ? json_array_get(inputs, 0) : inputs);
    return json_object_get(c->body, "parameters") != NULL || (text != NULL && strstr(text, "[MASK]") != NULL);
}

static const struct hub_task *task_of_model(const struct call *c, const struct served_model *m)
{
    switch (m->model.dir.task) {
    case MODEL_TASK_CAUSAL_LM: return &complete;
    case MODEL_TASK_QUESTION_ANSWERING: return &ask;
    case MODEL_TASK_SEQUENCE_CLASSIFICATION: return &classify;
    case MODEL_TASK_TOKEN_CLASSIFICATION: return &tag;
    case MODEL_TASK_MASKED_LM:
    case MODEL_TASK_PRETRAINING: return !m->model.files.found && asks_for_words(c) ? &fill : &features;
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
    {"POST", "/", &dialect_hub, answer, false},
    {0},
};
