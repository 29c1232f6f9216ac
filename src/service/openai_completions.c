/* openai_completions: POST /v1/completions of OpenAI, with what vLLM adds: sampling by top_k, min_p and
 * repetition_penalty, and ignore_eos.  With echo and logprobs it tells how probable a text is, as
 * lm-evaluation-harness asks. */
#include "core/clock.h"
#include "serve/answer_json.h"
#include "service/endpoints.h"
#include "service/generation_call.h"
#include "service/openai.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_NEW_TOKENS = 16, MOST_N = 128, MOST_LOG_PROBABILITIES = 5 };

/* What JSON has instead of minus infinity, as in vLLM. */
#define LEAST_LOG_P (-9999.0)

struct completion {
    struct generation_call q; /* first */
    bool streams, counts_at_end, echoes;
    int64_t n_log_p; /* alternatives for each token; -1: no probabilities are told */
    char id[48];
    int64_t created_s;
};

/* ---- what is asked ---- */

static bool is_given(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return value != NULL && !json_is_null(value);
}

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
    struct completion *q = c->state;
    int32_t n_pieces = q->q.m->model.tokenizer->n;
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
    struct completion *q = c->state;
    struct token_choice_options *o = &q->q.options.choice;
    const json_t *biases = NULL, *value;
    const char *key;
    if (!call_object(c, c->body, "logit_bias", &biases)) {
        return false;
    }
    q->q.biases = calloc(json_object_size(biases) + 1, sizeof *q->q.biases);
    if (q->q.biases == NULL) {
        call_fail_status(c, NULL, status_error(STATUS_MEMORY, "out of memory for logit_bias"));
        return false;
    }
    o->biases = q->q.biases;
    json_object_foreach((json_t *)biases, key, value)
    {
        if (!read_bias(c, &q->q.biases[o->n_biases++], key, value)) {
            return false;
        }
    }
    return true;
}

/* What changes nothing may be there; what kiln cannot do is refused by name. */
static bool check_refused(struct call *c, int64_t best_of)
{
    struct completion *q = c->state;
    const char *suffix = NULL;
    if (!call_string(c, c->body, "suffix", &suffix)) {
        return false;
    }
    if (suffix != NULL && suffix[0] != '\0') {
        call_fail_value(c, "suffix",
                        "suffix is not supported: a decoder continues a prompt, and does not see "
                        "what comes behind");
        return false;
    }
    if (best_of != q->q.n) {
        call_fail_value(c, "best_of",
                        "best_of is %lld, and n is %lld: texts are not chosen among, ask for as "
                        "many as you want by n",
                        (long long)best_of, (long long)q->q.n);
        return false;
    }
    if (is_given(c->body, "stream_options") && !q->streams) {
        call_fail_value(c, "stream_options", "stream_options is for stream: true alone");
        return false;
    }
    return true;
}

/* The model is chosen before. */
static bool read(struct call *c)
{
    struct completion *q = c->state;
    const json_t *b = c->body, *stream_options = NULL;
    struct generate_options *o = &q->q.options;
    int64_t best_of = -1;
    o->max_new_tokens = DEFAULT_NEW_TOKENS;
    q->n_log_p = -1;
    if (!call_bool(c, b, "stream", &q->streams) || !call_object(c, b, "stream_options", &stream_options) ||
        (stream_options != NULL && !call_bool(c, stream_options, "include_usage", &q->counts_at_end)) ||
        !call_bool(c, b, "echo", &q->echoes) || !call_bool(c, b, "ignore_eos", &o->ignore_eos) ||
        !call_int(c, b, "n", 1, MOST_N, &q->q.n) || !call_int(c, b, "best_of", 0, MOST_N, &best_of) ||
        !call_int(c, b, "logprobs", 0, MOST_LOG_PROBABILITIES, &q->n_log_p) ||
        !generation_call_read_limit(c, b, "max_tokens", 0) || !generation_call_read_seed(c, b, "seed") ||
        !generation_call_read_stops(c, b, "stop") || !read_choice(c, &o->choice) || !read_biases(c) ||
        !check_refused(c, best_of == -1 ? q->q.n : best_of)) {
        return false;
    }
    o->rates = q->n_log_p >= 0;
    o->rates_prompt = (o->rates && q->echoes) || o->max_new_tokens == 0;
    o->n_alternatives = o->rates ? (int)q->n_log_p : 0;
    return generation_call_read_prompts(c, b, "prompt");
}

/* ---- how probable tokens are ---- */

/* OpenAI's spelling of a token that is a part of a character. */
static void spell_bytes(struct buf *out, const char *bytes, size_t n)
{
    buf_puts(out, "bytes:");
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
    }
}

/* A token's text, or the spelling of its bytes, which are appended to `bytes` unless it is NULL. */
static void spell_token(struct buf *out, struct buf *bytes, const struct tokenizer *t, int32_t before,
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

/* Takes the characters at the begin of `bytes` that no later byte changes, and counts them. */
static int64_t take_characters(struct buf *bytes)
{
    const char *text = buf_text(bytes);
    int64_t count = 0;
    size_t at = 0;
    while (at < bytes->n) {
        uint32_t c;
        size_t n = (size_t)utf8_decode(&c, text + at, bytes->n - at);
        bool is_cut =
            at + n == bytes->n && (unsigned char)text[at] >= 0xC2 && utf8_find_invalid(text + at, n) == 0;
        if (is_cut) {
            break;
        }
        at += n;
        count++;
    }
    if (at > 0) {
        bytes->n -= at;
        memmove(bytes->data, bytes->data + at, bytes->n + 1);
    }
    return count;
}

static json_t *log_p_of(struct token_probability p)
{
    return json_real(p.log_p > LEAST_LOG_P ? (double)p.log_p : LEAST_LOG_P);
}

/* {TOKEN: log p, ...} of the most probable tokens and the one that is there.  Of those with one text the most
 * probable counts. */
static json_t *top_of(const struct token_probability *row, int n_alternatives, const struct tokenizer *t,
                      int32_t before)
{
    json_t *top = json_object();
    struct buf token = {0};
    for (int k = 1; k <= n_alternatives + 1; k++) {
        struct token_probability p = row[k <= n_alternatives ? k : 0];
        if (p.id >= 0) {
            spell_token(&token, NULL, t, before, p.id);
            if (json_object_get(top, buf_text(&token)) == NULL) {
                json_object_set_new(top, buf_text(&token), log_p_of(p));
            }
        }
    }
    buf_fini(&token);
    return top;
}

/* Tells of the tokens that were not told of; the first of a text has nothing that it could be probable
 * behind. */
static json_t *log_p_json(struct completion *q, struct generation_text *t)
{
    const struct tokenizer *tokenizer = q->q.m->model.tokenizer;
    const struct generation *g = &t->g;
    int n = t->options.n_alternatives;
    json_t *tokens = json_array(), *own = json_array(), *top = json_array(), *offsets = json_array();
    struct buf token = {0};
    size_t first = q->echoes ? 0 : g->n_prompt;
    for (size_t i = first + t->n_sent_tokens; i < g->ids.n; i++) {
        int32_t before = i > first ? g->ids.ids[i - 1] : -1;
        const struct token_probability *row =
            i < g->first_rated ? NULL : g->rated + (i - g->first_rated) * (1 + (size_t)n);
        json_array_append_new(offsets, json_integer(t->n_characters));
        spell_token(&token, &t->uncounted, tokenizer, before, g->ids.ids[i]);
        t->n_characters += take_characters(&t->uncounted);
        json_array_append_new(tokens, json_string(buf_text(&token)));
        json_array_append_new(own, row == NULL ? json_null() : log_p_of(row[0]));
        json_array_append_new(top, row == NULL ? json_null() : top_of(row, n, tokenizer, before));
    }
    t->n_sent_tokens = g->ids.n - first;
    buf_fini(&token);
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", own, "top_logprobs", top,
                     "text_offset", offsets);
}

/* ---- answers ---- */

/* What was not sent of a text; its prompt comes first. */
static json_t *text_json(struct completion *q, struct generation_text *t, bool is_first)
{
    const struct generation_prompt *p = t->prompt;
    struct buf text = {0};
    json_t *said = generation_text_take(t);
    if (!q->echoes || !is_first || said == NULL) {
        return said;
    }
    if (p->text.bytes != NULL) {
        buf_append(&text, p->text.bytes, p->text.n);
    } else {
        text.failed |= failed(tokenizer_decode(q->q.m->model.tokenizer, &text, p->ids.ids, p->ids.n));
    }
    buf_append(&text, json_string_value(said), json_string_length(said));
    json_decref(said);
    said = text.failed ? NULL : answer_json_said(buf_text(&text), text.n);
    buf_fini(&text);
    return said;
}

static json_t *choice_json(struct completion *q, struct generation_text *t, bool is_first)
{
    json_t *text = text_json(q, t, is_first);
    return json_pack("{s:o, s:I, s:o, s:s?}", "text", text, "index", (json_int_t)t->number, "logprobs",
                     q->n_log_p >= 0 ? log_p_json(q, t) : json_null(), "finish_reason",
                     generation_end_name(t->g.end));
}

static json_t *reply_json(const struct completion *q, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:n, s:o}", "id", q->id, "object", "text_completion", "created",
                     (json_int_t)q->created_s, "model", q->q.m->name, "system_fingerprint", "choices",
                     choices);
}

static json_t *usage_json(struct call *c)
{
    struct generation_counts n = generation_call_count(c);
    return json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)n.n_prompt, "completion_tokens",
                     (json_int_t)n.n_new, "total_tokens", (json_int_t)(n.n_prompt + n.n_new));
}

/* In the engine's thread.  Where tokens are told of, each is. */
static void told(void *self, struct generation *g)
{
    struct call *c = self;
    struct completion *q = c->state;
    struct generation_text *t = (struct generation_text *)g;
    bool has_failed = g->end == GENERATION_FAILED || g->end == GENERATION_CANCELLED;
    if (has_failed || !(q->n_log_p >= 0 || generation_text_has_news(t))) {
        return;
    }
    json_t *chunk = reply_json(q, json_pack("[o]", choice_json(q, t, !t->has_begun)));
    t->has_begun = true;
    if (q->counts_at_end) {
        json_object_set_new(chunk, "usage", json_null());
    }
    call_stream_json(c, CALL_EVENTS, chunk);
}

static void end_stream(struct call *c)
{
    struct completion *q = c->state;
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
    struct completion *q = c->state;
    if (!generation_call_is_whole(c)) {
        return;
    }
    if (q->streams) {
        end_stream(c);
        return;
    }
    json_t *choices = json_array();
    for (int64_t i = 0; i < q->q.n_texts; i++) {
        json_array_append_new(choices, choice_json(q, &q->q.texts[i], true));
    }
    json_t *reply = reply_json(q, choices);
    json_object_set_new(reply, "usage", usage_json(c));
    call_reply(c, reply);
}

static void fail_length(struct call *c, int64_t most, int64_t n_prompt, int64_t n_new)
{
    call_fail_value(c, "prompt",
                    OPENAI_TOO_LONG
                    "%lld tokens. However, you requested %lld tokens (%lld in the prompt, %lld "
                    "for the completion). Please reduce the length of the prompt or max_tokens.",
                    (long long)most, (long long)(n_prompt + n_new), (long long)n_prompt, (long long)n_new);
}

static void answer(struct call *c)
{
    const char *name = NULL;
    if (!call_string(c, c->body, "model", &name)) {
        return;
    }
    struct completion *q = generation_call_create(c, sizeof *q, name);
    if (q == NULL || !read(c)) {
        return;
    }
    q->q.fail_length = fail_length;
    q->created_s = (int64_t)clock_wall_s();
    call_make_id(q->id, "cmpl-");
    generation_call_submit(c, q->streams ? told : NULL, finish);
}

const struct endpoint openai_completions_endpoints[] = {
    {"POST", "/v1/completions", &dialect_openai, answer, false},
    {"POST", "/completions", &dialect_openai, answer, false},
    {0},
};
