/* rerank: how well texts answer a query, by a classifier of one label that reads the query and each text as a
 * pair (Nogueira & Cho 2019, arXiv:1901.04085), in the two forms that share the path /rerank: TEI's, which
 * has "texts", and the one of Cohere and Jina, which has "documents"
 * (https://docs.cohere.com/reference/rerank, https://api.jina.ai). */
#include "service/classify_call.h"
#include "service/endpoints.h"

#include <stdlib.h>
#include <string.h>

struct rerank {
    struct classify_call classify;       /* first; text i is the query, its pair the text to rank */
    enum sentence_activation activation; /* makes a score of a logit */
    bool gives_texts;                    /* the answer has the texts */
    int64_t most;                        /* texts in the answer */

    /* Replies, once the texts are ranked. */
    void (*answer)(struct rerank *r);

    struct class_reading *ranked; /* [n] the best first, valid for `answer`; the label is a text's number */
};

/* ---- ranking ---- */

/* Sorts the texts by logit, since a sigmoid makes large ones equal. */
static void rank(struct classify_call *k)
{
    struct rerank *r = (struct rerank *)k;
    r->ranked = calloc(k->n, sizeof *r->ranked);
    if (r->ranked == NULL) {
        call_fail(k->call, 503, NULL, "out of memory for %zu texts", k->n);
        return;
    }
    struct class_reading *ranked = r->ranked;
    for (size_t i = 0; i < k->n; i++) {
        ranked[i] =
            (struct class_reading){.label = (int64_t)i, .score = classify_call_logits(k, (int64_t)i)[0]};
    }
    class_logits_sort(ranked, k->n);
    for (size_t i = 0; i < k->n; i++) {
        ranked[i].score = sentence_activation_of(r->activation, ranked[i].score);
    }
    r->answer(r);
    free(ranked);
}

/* The first model with one label, where none is named. */
static const char *find_reranker(const struct call *c)
{
    for (int i = 0; c->models != NULL && c->named == NULL && i < c->models->n; i++) {
        const struct served_model *m = &c->models->models[i];
        if (m->lanes[ANSWER_CLASSIFY] != NULL && m->model.model->labels.n == 1) {
            return m->name;
        }
    }
    return NULL;
}

static bool choose_model(struct call *c, const char *name)
{
    bool is_named = name != NULL && name[0] != '\0';
    if (call_model(c, is_named ? name : find_reranker(c), ANSWER_CLASSIFY) == NULL) {
        return false;
    }
    if (c->model->model.model->labels.n != 1) {
        call_fail(c, c->dialect->wrong_model, "model",
                  "the model %s does not rank texts: it has %lld labels, and a reranker has one",
                  c->model->name, (long long)c->model->model.model->labels.n);
        return false;
    }
    return true;
}

/* ---- what is asked ---- */

/* Reads "query" and the texts of an array, each a string or an object with "text". */
static bool read_texts(struct classify_call *k, const json_t *list, const char *key)
{
    struct call *c = k->call;
    const char *query = NULL;
    if (!call_string(c, c->body, "query", &query)) {
        return false;
    }
    if (query == NULL || query[0] == '\0') {
        call_fail_value(c, "query", "\"query\" is %s", query == NULL ? "missing: a string" : "empty");
        return false;
    }
    for (size_t i = 0; i < k->n; i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *text = json_is_object(one) ? json_object_get(one, "text") : one;
        if (!json_is_string(text)) {
            call_fail_value(c, key, "text %zu of \"%s\" is neither a string nor an object with \"text\"", i,
                            key);
            return false;
        }
        k->texts[i] = (struct text_bytes){query, strlen(query)};
        k->pairs[i] = call_text(text);
    }
    return true;
}

/* One with the query and the texts of the body.  NULL: the call has failed. */
static struct rerank *make(struct call *c, const char *key, void (*reply)(struct rerank *r))
{
    const json_t *list = json_object_get(c->body, key);
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > CLASSIFY_TEXTS) {
        call_fail_value(c, key, "\"%s\" must be an array of at most %d texts", key, CLASSIFY_TEXTS);
        return NULL;
    }
    if (n == 0) {
        call_fail(c, 400, key, "\"%s\" has no texts", key);
        return NULL;
    }
    struct rerank *r = classify_call_make(c, sizeof *r);
    if (r == NULL || !classify_call_make_room(&r->classify, n, true) ||
        !read_texts(&r->classify, list, key)) {
        return NULL;
    }
    r->most = INT64_MAX;
    r->answer = reply;
    r->classify.answer = rank;
    return r;
}

/* ---- answers ---- */

/* [{"index", SCORE}, ...], and the texts where they are asked for: {"text"}, or {"document": {"text"}}. */
static json_t *ranked_to_json(const struct rerank *r, const char *score, bool in_documents)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->classify.n && (int64_t)i < r->most; i++) {
        const struct class_reading *t = &r->ranked[i];
        json_t *one = json_pack("{s:I, s:f}", "index", (json_int_t)t->label, score, t->score);
        if (r->gives_texts) {
            const struct text_bytes *text = &r->classify.pairs[t->label];
            json_t *said = json_stringn(text->bytes, text->n);
            json_object_set_new(one, in_documents ? "document" : "text",
                                in_documents ? json_pack("{s:o}", "text", said) : said);
        }
        json_array_append_new(list, one);
    }
    return list;
}

static void reply_tei(struct rerank *r)
{
    call_reply(r->classify.call, ranked_to_json(r, "score", false));
}

void rerank_answer_tei(struct call *c)
{
    bool raw = false;
    struct rerank *r = make(c, "texts", reply_tei);
    if (r != NULL && call_cut(c, c->body, &r->classify.cut) && call_bool(c, c->body, "raw_scores", &raw) &&
        call_bool(c, c->body, "return_text", &r->gives_texts) && choose_model(c, NULL)) {
        r->activation = raw ? SENTENCE_IDENTITY : SENTENCE_SIGMOID;
        classify_call_start(&r->classify);
    }
}

static void reply_documents(struct rerank *r)
{
    char id[CALL_ID_BYTES];
    struct call *c = r->classify.call;
    call_make_id(id, "rerank-");
    call_reply(c, json_pack("{s:s, s:s, s:o, s:{s:I, s:I}}", "id", id, "model", c->model->name, "results",
                            ranked_to_json(r, "relevance_score", true), "usage", "prompt_tokens",
                            (json_int_t)c->n_tokens, "total_tokens", (json_int_t)c->n_tokens));
}

static void answer_documents(struct call *c)
{
    const char *model = NULL;
    c->dialect = &dialect_openai; /* the clients read errors of this form */
    struct rerank *r = make(c, "documents", reply_documents);
    if (r != NULL && call_string(c, c->body, "model", &model) &&
        call_int(c, c->body, "top_n", 0, INT64_MAX, &r->most) &&
        call_bool(c, c->body, "return_documents", &r->gives_texts) && choose_model(c, model)) {
        r->most = r->most == 0 ? INT64_MAX : r->most; /* 0 asks for all, as vLLM's clients do */
        r->activation = c->model->model.scores.activation;
        classify_call_start(&r->classify);
    }
}

static void answer_either(struct call *c)
{
    (json_object_get(c->body, "documents") != NULL ? answer_documents : rerank_answer_tei)(c);
}

const struct endpoint rerank_endpoints[] = {
    {"POST", "/rerank", &dialect_tei, answer_either, .is_open = false},
    {"POST", "/v1/rerank", &dialect_openai, answer_documents, .is_open = false},
    {"POST", "/v2/rerank", &dialect_openai, answer_documents, .is_open = false},
    {0},
};
