/* rerank: a query and texts, ranked, in the two forms that share the path /rerank: TEI's, which has "texts",
 * and the one of Cohere and Jina, which has "documents" (https://docs.cohere.com/reference/rerank,
 * https://api.jina.ai). */
#include "service/call_cut.h"
#include "service/endpoints.h"
#include "service/rerank_call.h"

/* A text as the answer repeats it. */
static json_t *text_of(const struct rerank_call *r, int64_t index)
{
    return json_stringn(r->classify.pairs[index].bytes, r->classify.pairs[index].n);
}

/* Reads "query" and the texts of an array, each a string or an object with "text". */
static bool read_texts(struct rerank_call *r, const char *key)
{
    struct call *c = r->classify.call;
    const json_t *list = json_object_get(c->body, key);
    if (!call_string(c, c->body, "query", &r->query)) {
        return false;
    }
    if (r->query == NULL || r->query[0] == '\0') {
        call_fail_value(c, "query", "\"query\" is %s", r->query == NULL ? "missing: a string" : "empty");
        return false;
    }
    for (size_t i = 0; i < r->classify.n; i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *text = json_is_object(one) ? json_object_get(one, "text") : one;
        if (!json_is_string(text)) {
            call_fail_value(c, key, "text %zu of \"%s\" is neither a string nor an object with \"text\"", i,
                            key);
            return false;
        }
        r->classify.pairs[i] = (struct text_bytes){json_string_value(text), json_string_length(text)};
    }
    return true;
}

/* One with the query and the texts of the body.  NULL: the call has failed. */
static struct rerank_call *make(struct call *c, const char *key)
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
    struct rerank_call *r = rerank_call_make(c, n);
    return r != NULL && read_texts(r, key) ? r : NULL;
}

/* ---- TEI ---- */

static void reply_tei(struct rerank_call *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->classify.n; i++) {
        const struct ranked_text *t = &r->ranked[i];
        json_t *one = json_pack("{s:I, s:f}", "index", (json_int_t)t->index, "score", t->score);
        if (r->gives_texts) {
            json_object_set_new(one, "text", text_of(r, t->index));
        }
        json_array_append_new(list, one);
    }
    call_reply(r->classify.call, list);
}

void rerank_answer_tei(struct call *c)
{
    bool raw = false;
    struct rerank_call *r = make(c, "texts");
    if (r == NULL || !call_cut(c, c->body, &r->classify.cut) || !call_bool(c, c->body, "raw_scores", &raw) ||
        !call_bool(c, c->body, "return_text", &r->gives_texts)) {
        return;
    }
    r->scale = raw ? RERANK_LOGIT : RERANK_SIGMOID;
    r->answer = reply_tei;
    rerank_call_start(r);
}

/* ---- Cohere and Jina ---- */

static void reply_documents(struct rerank_call *r)
{
    char id[48];
    json_t *list = json_array();
    struct call *c = r->classify.call;
    for (size_t i = 0; i < r->classify.n && (int64_t)i < r->most; i++) {
        const struct ranked_text *t = &r->ranked[i];
        json_t *one = json_pack("{s:I, s:f}", "index", (json_int_t)t->index, "relevance_score", t->score);
        if (r->gives_texts) {
            json_object_set_new(one, "document", json_pack("{s:o}", "text", text_of(r, t->index)));
        }
        json_array_append_new(list, one);
    }
    call_make_id(id, "rerank-");
    call_reply(c, json_pack("{s:s, s:s, s:o, s:{s:I, s:I}}", "id", id, "model", c->model->name, "results",
                            list, "usage", "prompt_tokens", (json_int_t)c->n_tokens, "total_tokens",
                            (json_int_t)c->n_tokens));
}

static void answer_documents(struct call *c)
{
    c->dialect = &dialect_openai; /* the clients read errors of this form */
    struct rerank_call *r = make(c, "documents");
    if (r == NULL || !call_string(c, c->body, "model", &r->model) ||
        !call_int(c, c->body, "top_n", 0, INT64_MAX, &r->most) ||
        !call_bool(c, c->body, "return_documents", &r->gives_texts)) {
        return;
    }
    r->most = r->most == 0 ? INT64_MAX : r->most; /* 0 asks for all, as vLLM's clients do */
    r->scale = RERANK_AS_MODEL;
    r->answer = reply_documents;
    rerank_call_start(r);
}

static void answer_either(struct call *c)
{
    (json_object_get(c->body, "documents") != NULL ? answer_documents : rerank_answer_tei)(c);
}

const struct endpoint rerank_endpoints[] = {
    {"POST", "/rerank", &dialect_tei, answer_either, false},
    {"POST", "/v1/rerank", &dialect_openai, answer_documents, false},
    {"POST", "/v2/rerank", &dialect_openai, answer_documents, false},
    {0},
};
