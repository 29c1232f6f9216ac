/* openai: the models in OpenAI's form, with the runs that are watched; its vectors, as its clients ask for
 * them, of strings or ids, as numbers or base64; and what of its API kiln does not have (openapi.json of
 * github.com/openai/openai-openapi, 2026-08-21). */
#include "service/embedding_call.h"
#include "service/endpoints.h"
#include "service/service.h"
#include "service/watched_runs.h"

/* ---- models ---- */

static json_t *answers_of(const struct served_model *m)
{
    json_t *list = json_array();
    for (int a = 0; a < SERVED_ANSWERS; a++) {
        if (m->lanes[a] != NULL) {
            json_array_append_new(list, json_string(answer_kind_of((enum answer)a)->name));
        }
    }
    return list;
}

static json_t *mask_of(const struct served_model *m)
{
    int32_t id = m->model.tokenizer->special[SPECIAL_MASK];
    size_t n = 0;
    const char *piece = m->lanes[ANSWER_FILL] == NULL ? NULL : tokenizer_piece(m->model.tokenizer, id, &n);
    return piece == NULL ? json_null() : json_stringn(piece, n);
}

/* Describes a model as vLLM does, with the tokens that it reads; and with its answers, for the page. */
static json_t *describe(const struct served_models *set, const struct served_model *m)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:o, s:o}", "id", m->name, "object", "model", "created",
                     (json_int_t)set->loaded_s, "owned_by", "kiln", "max_model_len",
                     (json_int_t)served_model_length(m), "answers", answers_of(m), "mask_token", mask_of(m));
}

static void list_models(struct call *c)
{
    if (!call_can_work(c)) {
        return;
    }
    json_t *data = json_array();
    for (int i = 0; i < c->models->n; i++) {
        json_array_append_new(data, describe(c->models, &c->models->models[i]));
    }
    call_reply(c, json_pack("{s:s, s:o, s:o}", "object", "list", "data", data, "watched",
                            watched_runs_names(c->service->watched)));
}

static void show_model(struct call *c)
{
    const struct served_model *m = call_any_model(c, c->rest);
    if (m != NULL) {
        call_reply(c, describe(c->models, m));
    }
}

/* ---- vectors ---- */

/* {"object": "list", "data": [...], "model": ..., "usage": {...}}, whose vectors are written by hand: as JSON
 * values they take longer than the model. */
static void reply_vectors(struct embedding_call *e)
{
    struct buf body = {0};
    long long n_tokens = e->call->n_tokens;
    buf_puts(&body, "{\"object\":\"list\",\"data\":[");
    for (int64_t i = 0; i < e->n; i++) {
        buf_printf(&body, "%s{\"object\":\"embedding\",\"index\":%lld,\"embedding\":", i == 0 ? "" : ",",
                   (long long)i);
        embedding_call_write(&body, e, i);
        buf_putc(&body, '}');
    }
    buf_puts(&body, "],\"model\":");
    embedding_call_write_model(&body, e);
    buf_printf(&body, ",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}", n_tokens, n_tokens);
    call_reply_text(e->call, 200, "application/json", &body);
}

static void embed(struct call *c)
{
    const char *model = NULL;
    struct embedding_call *e = embedding_call_make(c);
    if (e == NULL || !call_string(c, c->body, "model", &model) || !embedding_call_read_options(e, c->body)) {
        return;
    }
    e->key = "input";
    e->most = EMBEDDING_OPENAI_TEXTS;
    e->answer = reply_vectors;
    embedding_call_start(e, model, json_object_get(c->body, e->key));
}

/* ---- what kiln does not have ---- */

/* 404 and not 501, which clients try again. */
static void refuse_responses(struct call *c)
{
    call_fail(c, 404, NULL,
              "kiln does not answer /v1/responses: use /v1/chat/completions, or /v1/completions");
}

const struct endpoint openai_endpoints[] = {
    {"GET", "/v1/models", &dialect_openai, list_models, .is_open = false},
    {"GET", "/models", &dialect_openai, list_models, .is_open = false},
    {"GET", "/v1/models/", &dialect_openai, show_model, .is_open = false},
    {"GET", "/models/", &dialect_openai, show_model, .is_open = false},
    {"POST", "/v1/embeddings", &dialect_openai, embed, .is_open = false},
    {"POST", "/embeddings", &dialect_openai, embed, .is_open = false},
    {"POST", "/v1/responses", &dialect_openai, refuse_responses, .is_open = false},
    {0},
};
