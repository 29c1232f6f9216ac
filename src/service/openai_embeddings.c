/* openai_embeddings: OpenAI's /v1/embeddings (https://platform.openai.com/docs/api-reference/embeddings), as
 * its clients ask it: with strings or ids, for numbers or base64. */
#include "service/embedding_call.h"
#include "service/endpoints.h"

#include <stdlib.h>

/* {"object": "list", "data": [...], "model": ..., "usage": {...}}, whose vectors are written by hand: as JSON
 * values they take longer than the model. */
static void reply(struct embedding_call *e)
{
    struct buf body = {0};
    long long n_tokens = e->call->n_tokens;
    json_t *name = json_string(e->call->model->name);
    char *quoted = name == NULL ? NULL : json_dumps(name, JSON_ENCODE_ANY);
    buf_puts(&body, "{\"object\":\"list\",\"data\":[");
    for (int64_t i = 0; i < e->n; i++) {
        buf_printf(&body, "%s{\"object\":\"embedding\",\"index\":%lld,\"embedding\":", i == 0 ? "" : ",",
                   (long long)i);
        embedding_call_write(&body, e, i);
        buf_putc(&body, '}');
    }
    buf_printf(&body, "],\"model\":%s,\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}",
               quoted == NULL ? "null" : quoted, n_tokens, n_tokens);
    free(quoted);
    json_decref(name);
    call_reply_text(e->call, 200, "application/json", &body);
}

static void answer(struct call *c)
{
    const char *model = NULL;
    struct embedding_call *e = embedding_call_make(c);
    if (e == NULL || !call_string(c, c->body, "model", &model) || !embedding_call_read_options(e, c->body)) {
        return;
    }
    e->key = "input";
    e->most = EMBEDDING_OPENAI_TEXTS;
    e->answer = reply;
    embedding_call_start(e, model, json_object_get(c->body, e->key));
}

const struct endpoint openai_embeddings_endpoints[] = {
    {"POST", "/v1/embeddings", &dialect_openai, answer, false},
    {"POST", "/embeddings", &dialect_openai, answer, false},
    {0},
};
