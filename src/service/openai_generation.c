#include "service/openai_generation.h"

#include "core/clock.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_N = 128 };

/* The number in JSON instead of minus infinity, as in vLLM. */
#define LEAST_LOG_P (-9999.0)

static void fail_length(struct call *c, int64_t most, int64_t n_prompt, int64_t n_new)
{
    const char *prompt = ((struct openai_generation *)c->state)->prompt;
    call_fail_value(c, prompt,
                    OPENAI_TOO_LONG "%lld tokens. However, you requested %lld tokens (%lld in the %s, %lld "
                                    "for the completion). Please reduce the length of the %s or max_tokens.",
                    (long long)most, (long long)(n_prompt + n_new), (long long)n_prompt, prompt,
                    (long long)n_new, prompt);
}

void *openai_generation_create(struct call *c, size_t bytes, const char *prompt, const char *object,
                               const char *prefix)
{
    const char *name = NULL;
    struct openai_generation *q =
        call_string(c, c->body, "model", &name) ? generation_call_create(c, bytes, name) : NULL;
    if (q != NULL) {
        q->q.fail_length = fail_length;
        q->n_log_p = -1;
        q->prompt = prompt;
        q->object = object;
        q->created_s = (int64_t)clock_wall_s();
        call_make_id(q->id, prefix);
    }
    return q;
}

/* ---- what is asked ---- */

static bool read_choice(struct call *c, struct token_choice_options *o)
{
    const json_t *b = c->body;
    int64_t top_k = 0;
    bool ok = call_real(c, b, "temperature", 0, 2, &o->temperature) &&
              call_real(c, b, "top_p", 0, 1, &o->top_p) &&
              call_real(c, b, "presence_penalty", -2, 2, &o->presence_penalty) &&
              call_real(c, b, "frequency_penalty", -2, 2, &o->frequency_penalty) &&
              call_int(c, b, "top_k", -1, INT32_MAX, &top_k) && call_real(c, b, "min_p", 0, 1, &o->min_p) &&
              call_real(c, b, "repetition_penalty", 0.01, 100, &o->repetition_penalty);
    o->top_k = top_k < 0 ? 0 : top_k; /* -1 is vLLM's for all */
    return ok;
}

static bool read_bias(struct call *c, struct token_bias *bias, const char *key, const json_t *value)
{
    struct generation_call *q = c->state;
    int32_t n_pieces = q->m->model.tokenizer->n;
    char *end;
    long id = strtol(key, &end, 10);
    double add = json_number_value(value);
    if (key[0] < '0' || key[0] > '9' || *end != '\0' || id < 0 || id >= n_pieces) {
        call_fail_value(c, "logit_bias", "logit_bias has the key '%.40s', which is no id from 0 to %d", key,
                        n_pieces - 1);
        return false;
    }
    if (!json_is_number(value) || add < -100 || add > 100) {
        call_fail_value(c, "logit_bias", "logit_bias of the id %ld must be a number from -100 to 100", id);
        return false;
    }
    *bias = (struct token_bias){(int32_t)id, (float)add};
    return true;
}

/* {"ID": what is added to its logit, ...} */
static bool read_biases(struct call *c)
{
    struct generation_call *q = c->state;
    struct token_choice_options *o = &q->options.choice;
    const json_t *biases = NULL, *value;
    const char *key;
    if (!call_object(c, c->body, "logit_bias", &biases)) {
        return false;
    }
    q->biases = calloc(json_object_size(biases) + 1, sizeof *q->biases);
    if (q->biases == NULL) {
        call_fail_status(c, NULL, status_error(STATUS_MEMORY, "out of memory for logit_bias"));
        return false;
    }
    o->biases = q->biases;
    json_object_foreach((json_t *)biases, key, value)
    {
        if (!read_bias(c, &q->biases[o->n_biases++], key, value)) {
            return false;
        }
    }
    return true;
}

bool openai_generation_read(struct call *c)
{
    struct openai_generation *q = c->state;
    const json_t *b = c->body, *stream_options = NULL;
    if (!call_bool(c, b, "stream", &q->streams) || !call_object(c, b, "stream_options", &stream_options) ||
        (stream_options != NULL && !call_bool(c, stream_options, "include_usage", &q->counts_at_end)) ||
        !call_bool(c, b, "ignore_eos", &q->q.options.ignore_eos) ||
        !call_int(c, b, "n", 1, MOST_N, &q->q.n) || !generation_call_read_seed(c, b, "seed") ||
        !generation_call_read_stops(c, b, "stop") || !read_choice(c, &q->q.options.choice) ||
        !read_biases(c)) {
        return false;
    }
    if (stream_options != NULL && !q->streams) {
        call_fail_value(c, "stream_options", "stream_options is for stream: true alone");
        return false;
    }
    return true;
}

/* ---- tokens ---- */

/* OpenAI's spelling of a token that is a part of a character. */
static void spell_bytes(struct buf *out, const char *bytes, size_t n)
{
    buf_puts(out, "bytes:");
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
    }
}

void openai_generation_spell(struct buf *out, struct buf *bytes, const struct tokenizer *t, int32_t before,
                             int32_t id)
{
    struct buf says = {0};
    generation_token_says(&says, t, before, id);
    const char *text = buf_text(&says);
    buf_clear(out);
    if (utf8_find_invalid(text, says.n) < says.n || memchr(text, '\0', says.n) != NULL) {
        spell_bytes(out, text, says.n);
    } else {
        buf_append(out, text, says.n);
    }
    if (bytes != NULL) {
        buf_append(bytes, text, says.n);
    }
    out->failed |= says.failed;
    buf_fini(&says);
}

json_t *openai_generation_log_p(struct token_probability p)
{
    return json_real(p.log_p > LEAST_LOG_P ? (double)p.log_p : LEAST_LOG_P);
}

/* ---- answers ---- */

static json_t *reply_json(const struct openai_generation *q, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:n, s:o}", "id", q->id, "object", q->object, "created",
                     (json_int_t)q->created_s, "model", q->q.m->name, "system_fingerprint", "choices",
                     choices);
}

static json_t *usage_json(struct call *c)
{
    return json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)c->n_tokens, "completion_tokens",
                     (json_int_t)c->n_new_tokens, "total_tokens",
                     (json_int_t)(c->n_tokens + c->n_new_tokens));
}

void openai_generation_send(struct call *c, json_t *choice)
{
    struct openai_generation *q = c->state;
    json_t *chunk = reply_json(q, json_pack("[o]", choice));
    if (q->counts_at_end) {
        json_object_set_new(chunk, "usage", json_null());
    }
    call_stream_json(c, CALL_EVENTS, chunk);
}

static void end_stream(struct call *c)
{
    struct openai_generation *q = c->state;
    json_t *usage = usage_json(c);
    if (q->counts_at_end) {
        json_t *last = reply_json(q, json_array());
        json_object_set_new(last, "usage", usage);
        call_stream_json(c, CALL_EVENTS, last);
    } else {
        json_decref(usage);
    }
    call_stream_done(c);
    call_stream_end(c, true);
}

static void finish(struct call *c)
{
    struct openai_generation *q = c->state;
    if (!generation_call_is_whole(c)) {
        return;
    }
    if (q->streams) {
        end_stream(c);
        return;
    }
    json_t *choices = json_array();
    for (int64_t i = 0; i < q->q.n_texts; i++) {
        json_array_append_new(choices, q->choice(c, &q->q.texts[i]));
    }
    json_t *reply = reply_json(q, choices);
    json_object_set_new(reply, "usage", usage_json(c));
    call_reply(c, reply);
}

void openai_generation_submit(struct call *c, void (*told)(void *self, struct generation *g))
{
    struct openai_generation *q = c->state;
    generation_call_submit(c, q->streams ? told : NULL, finish);
}

static json_t *token_json(const struct tokenizer *t, int32_t before, struct token_probability p)
{
    struct buf token = {0}, bytes = {0};
    json_t *list = json_array();
    openai_generation_spell(&token, &bytes, t, before, p.id);
    for (size_t i = 0; i < bytes.n; i++) {
        json_array_append_new(list, json_integer((unsigned char)bytes.data[i]));
    }
    json_t *made = json_pack("{s:s, s:o, s:o}", "token", buf_text(&token), "logprob",
                             openai_generation_log_p(p), "bytes", list);
    buf_fini(&token);
    buf_fini(&bytes);
    return made;
}

json_t *openai_generation_report(const struct tokenizer *t, const struct generation *g, size_t first)
{
    json_t *content = json_array();
    size_t n = (size_t)(1 + g->options->n_alternatives);
    for (size_t i = g->n_prompt + first; i < g->ids.n; i++) {
        int32_t before = i > g->n_prompt ? g->ids.ids[i - 1] : -1;
        const struct token_probability *row = g->rated + (i - g->first_rated) * n;
        json_t *token = token_json(t, before, row[0]), *top = json_array();
        for (size_t k = 1; k < n && row[k].id >= 0; k++) {
            json_array_append_new(top, token_json(t, before, row[k]));
        }
        json_object_set_new(token, "top_logprobs", top);
        json_array_append_new(content, token);
    }
    return json_pack("{s:o, s:n}", "content", content, "refusal");
}
