/* tei: the endpoints of text-embeddings-inference 1.9
 * (https://huggingface.github.io/text-embeddings-inference, router/src/http of its sources), but for
 * /rerank, /tokenize and /decode. */
#include "service/classify_call.h"
#include "service/embedding_call.h"
#include "service/endpoints.h"
#include "service/service.h"

#include <stdlib.h>

/* ---- vectors ---- */

/* Forms of the answer. */
enum { OF_TEXTS, OF_TOKENS };

static void answer_vectors(struct call *c)
{
    struct embedding_call *e = embedding_call_make(c);
    if (e == NULL || !embedding_call_read_options(e, c->body)) {
        return;
    }
    e->of_tokens = c->form == OF_TOKENS;
    e->answer = embedding_call_reply_list;
    embedding_call_start(e, NULL, json_object_get(c->body, e->key));
}

static void answer_similarity(struct call *c)
{
    const json_t *inputs, *parameters;
    struct embedding_call *e = embedding_call_make(c);
    if (e != NULL && call_object(c, c->body, "inputs", &inputs) &&
        call_object(c, c->body, "parameters", &parameters) && embedding_call_read_options(e, parameters)) {
        embedding_call_compare(e, inputs);
    }
}

/* ---- labels ---- */

/* Replies with the labels of one text or pair, a list, or of many, a list of these. */
static void reply_labels(struct classify_call *k)
{
    bool is_batch = json_is_array(json_array_get(json_object_get(k->call->body, "inputs"), 0));
    json_t *list = json_array();
    for (size_t i = 0; is_batch && i < k->n; i++) {
        json_array_append_new(list, classify_call_labels(k, (int64_t)i));
    }
    if (!is_batch) {
        json_decref(list);
        list = classify_call_labels(k, 0);
    }
    call_reply(k->call, list);
}

/* Text i of the batch, "a", ["a"] or ["a", "b"].  False: the call has failed. */
static bool read_text(struct classify_call *k, size_t i, const json_t *input)
{
    size_t n = json_array_size(input);
    const json_t *a = json_is_array(input) ? json_array_get(input, 0) : input, *b = json_array_get(input, 1);
    if (!json_is_string(a) || n > 2 || (n == 2 && !json_is_string(b))) {
        call_fail_value(
            k->call, "inputs",
            "\"inputs\" must be a string, an array of one or two strings, or an array of such arrays");
        return false;
    }
    if ((k->pairs != NULL) != (n == 2)) {
        call_fail_value(k->call, "inputs", "\"inputs\" mixes single texts and pairs of texts");
        return false;
    }
    k->texts[i] = call_text(a);
    if (n == 2) {
        k->pairs[i] = call_text(b);
    }
    if (k->texts[i].n == 0 && n != 2) {
        call_fail_value(k->call, "inputs", "text %zu of \"inputs\" is empty", i);
        return false;
    }
    return true;
}

/* "inputs": "a"; ["a", "b"], which is one pair; or an array of ["a"] and ["a", "b"]. */
static bool read_inputs(struct classify_call *k)
{
    struct call *c = k->call;
    const json_t *inputs = json_object_get(c->body, "inputs"), *first = json_array_get(inputs, 0);
    bool is_batch = json_is_array(first);
    size_t n = is_batch ? json_array_size(inputs) : 1;
    if (json_is_array(inputs) && first == NULL) {
        call_fail(c, 400, "inputs", "\"inputs\" has no texts");
        return false;
    }
    if (n > CLASSIFY_TEXTS) {
        call_fail_value(c, "inputs", "\"inputs\" has %zu texts; this server takes at most %d in a request", n,
                        CLASSIFY_TEXTS);
        return false;
    }
    bool reads = classify_call_make_room(k, n, json_array_size(is_batch ? first : inputs) == 2);
    for (size_t i = 0; i < n && reads; i++) {
        reads = read_text(k, i, is_batch ? json_array_get(inputs, i) : inputs);
    }
    return reads;
}

static void answer_predict(struct call *c)
{
    bool raw = false;
    struct classify_call *k = classify_call_make(c, sizeof *k);
    if (k != NULL && read_inputs(k) && call_cut(c, c->body, &k->cut) &&
        call_bool(c, c->body, "raw_scores", &raw) && call_model(c, NULL, ANSWER_CLASSIFY) != NULL) {
        k->problem = raw ? PROBLEM_REGRESSION : classify_texts_problem(&c->model->model);
        k->answer = reply_labels;
        classify_call_start(k);
    }
}

/* ---- what the server is ---- */

static json_t *names_to_json(const struct model_labels *labels)
{
    json_t *o = json_object();
    if (label_names_to_json(labels->names, o)) {
        return o;
    }
    json_decref(o);
    return NULL;
}

/* {"embedding": {"pooling"}}, {"reranker": ...}, {"classifier": ...}; of other models {NAME: {}}. */
static json_t *model_type(const struct served_model *m)
{
    const struct model_labels *labels = &m->model.model->labels;
    enum model_task task = m->model.dir.task;
    if (m->lanes[ANSWER_CLASSIFY] != NULL) {
        return json_pack("{s:o}", labels->n == 1 ? "reranker" : "classifier", names_to_json(labels));
    }
    if (task == MODEL_TASK_ENCODER || (m->lanes[ANSWER_EMBED] != NULL && m->model.files.found)) {
        return json_pack("{s:{s:s}}", "embedding", "pooling",
                         sentence_pooling_name(m->model.files.poolings[0]));
    }
    return json_pack("{s:{}}", task == MODEL_TASK_CAUSAL_LM            ? "generator"
                               : task == MODEL_TASK_QUESTION_ANSWERING ? "question_answering"
                               : m->lanes[ANSWER_TAG] != NULL          ? "token_classifier"
                                                                       : "fill_mask");
}

static void answer_info(struct call *c)
{
    struct served_model *m = call_any_model(c, NULL);
    if (m == NULL) {
        return;
    }
    const struct service_options *o = &c->service->options;
    const struct precision p = m->model.net.config.precision;
    call_reply(c, json_pack("{s:s, s:n, s:s, s:s, s:o, s:I, s:I, s:I, s:n, s:i, s:b, s:i, s:s, s:n, s:n}",
                            "model_id", m->path, "model_sha", "model_dtype",
                            p.int8 ? "int8" : dtype_name(p.dtype), "served_model_name", m->name, "model_type",
                            model_type(m), "max_concurrent_requests", (json_int_t)o->models.engine.max_works,
                            "max_input_length", (json_int_t)served_model_length(m), "max_batch_tokens",
                            (json_int_t)m->model.batch_tokens, "max_batch_requests", "max_client_batch_size",
                            EMBEDDING_TEXTS, "auto_truncate", 1, "tokenization_workers", 1, "version",
                            KILN_VERSION, "sha", "docker_label"));
}

void tei_answer_health(struct call *c)
{
    struct buf nothing = {0};
    if (call_can_work(c)) {
        call_reply_text(c, 200, "text/plain", &nothing);
    }
}

const struct endpoint tei_endpoints[] = {
    {"POST", "/embed", &dialect_tei, answer_vectors, .form = OF_TEXTS},
    {"POST", "/embed_all", &dialect_tei, answer_vectors, .form = OF_TOKENS},
    {"POST", "/similarity", &dialect_tei, answer_similarity, .is_open = false},
    {"POST", "/predict", &dialect_tei, answer_predict, .is_open = false},
    {"GET", "/info", &dialect_tei, answer_info, .is_open = false},
    {"GET", "/health", &dialect_tei, tei_answer_health, .is_open = true},
    {"GET", "/ping", &dialect_tei, tei_answer_health, .is_open = true},
    {0},
};
