/* tgi: POST /generate and /generate_stream of text-generation-inference (github.com/huggingface), and its
 * form at the root, which huggingface_hub's text_generation asks.
 *
 * Differences from TGI: a text ends before a stop, not after it; the token that ends a text says nothing, so
 * that the texts of a stream's tokens are the text. */
#include "serve/answer_json.h"
#include "service/endpoints.h"
#include "service/generation_call.h"

#include <string.h>

enum { DEFAULT_NEW_TOKENS = 100, MOST_ALTERNATIVES = 5 };

struct tgi {
    struct generation_call q; /* first */
    bool streams, is_list, tells_tokens, tells_prompt, returns_prompt, samples;
};

/* ---- what is asked ---- */

/* Refuses the fields that kiln does not support. */
static bool check_refused(struct call *c, const json_t *p)
{
    static const char *const names[] = {"grammar", "adapter_id", "watermark"};
    int64_t best_of = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = call_field(p, names[i]);
        if (value != NULL && !json_is_false(value)) {
            call_fail_value(c, names[i], "`%s` is not supported", names[i]);
            return false;
        }
    }
    return call_int(c, p, "best_of", 1, 1, &best_of);
}

/* Reads how tokens are chosen.  As in TGI, each field that changes probabilities asks for sampling.
 * typical_p, which langchain sends unasked, is not applied, and the answer says so. */
static bool read_choice(struct call *c, const json_t *p)
{
    struct tgi *q = c->state;
    struct token_choice_options *o = &q->q.options.choice;
    double typical_p = 1;
    if (!call_bool(c, p, "do_sample", &q->samples) ||
        !call_real(c, p, "temperature", 0, 100, &o->temperature) ||
        !call_int(c, p, "top_k", 0, INT32_MAX, &o->top_k) || !call_real(c, p, "top_p", 0, 1, &o->top_p) ||
        !call_real(c, p, "typical_p", 0, 1, &typical_p) ||
        !call_real(c, p, "repetition_penalty", 0.01, 100, &o->repetition_penalty) ||
        !call_real(c, p, "frequency_penalty", -2, 2, &o->frequency_penalty)) {
        return false;
    }
    q->samples = q->samples || o->temperature != 1 || o->top_k > 0 || o->top_p < 1 || typical_p < 1;
    o->temperature = q->samples ? o->temperature : 0;
    if (typical_p < 1) {
        http_add_header(c->x, "X-Ignored-Parameters", "typical_p");
    }
    return true;
}

static bool read(struct call *c)
{
    struct tgi *q = c->state;
    struct generate_options *o = &q->q.options;
    const json_t *p = NULL;
    int64_t n_alternatives = 0;
    o->max_new_tokens = DEFAULT_NEW_TOKENS;
    if (!call_object(c, c->body, "parameters", &p) || !check_refused(c, p) ||
        !generation_call_read_limit(c, p, "max_new_tokens", 1) || !generation_call_read_stops(c, p, "stop") ||
        !generation_call_read_seed(c, p, "seed") || !read_choice(c, p) ||
        !call_int(c, p, "truncate", 1, INT32_MAX, &q->q.most_prompt_tokens) ||
        !call_int(c, p, "top_n_tokens", 0, MOST_ALTERNATIVES, &n_alternatives) ||
        !call_bool(c, p, "details", &q->tells_tokens) ||
        !call_bool(c, p, "decoder_input_details", &q->tells_prompt) ||
        !call_bool(c, p, "return_full_text", &q->returns_prompt)) {
        return false;
    }
    if (q->streams && q->tells_prompt) {
        call_fail_value(c, "decoder_input_details",
                        "`decoder_input_details` == true is not supported when streaming tokens");
        return false;
    }
    o->rates = q->tells_tokens || q->streams;
    o->rates_prompt = q->tells_tokens && q->tells_prompt;
    o->n_alternatives = o->rates ? (int)n_alternatives : 0;
    if (!json_is_string(json_object_get(c->body, "inputs"))) {
        call_fail_value(c, "inputs", "`inputs` must be a string");
        return false;
    }
    return generation_call_read_prompts(c, c->body, "inputs");
}

/* ---- answers ---- */

static const char *end_name(enum generation_end end)
{
    return end == GENERATION_AT_END ? "eos_token" : end == GENERATION_AT_STOP ? "stop_sequence" : "length";
}

/* The probabilities of token `at`; NULL: it is the first of its prompt. */
static const struct token_probability *row_of(const struct generation_text *t, size_t at)
{
    const struct generation *g = &t->g;
    return at < g->first_rated ? NULL
                               : g->rated + (at - g->first_rated) * (1 + (size_t)t->options.n_alternatives);
}

/* {"id", "text", "logprob", "special"}; takes `text` over. */
static json_t *token_json(const struct tgi *q, struct token_probability p, json_t *text)
{
    return json_pack("{s:i, s:o, s:o, s:b}", "id", (int)p.id, "text", text, "logprob",
                     json_finite((double)p.log_p), "special",
                     tokenizer_is_special(q->q.m->model.tokenizer, p.id));
}

static json_t *says(const struct tgi *q, int32_t before, int32_t id)
{
    struct buf text = {0};
    generation_token_says(&text, q->q.m->model.tokenizer, before, id);
    json_t *said = text.failed ? NULL : answer_json_said(buf_text(&text), text.n);
    buf_fini(&text);
    return said;
}

/* The most probable tokens in the place of token `at`. */
static json_t *top_json(const struct tgi *q, const struct generation_text *t, size_t at)
{
    const struct token_probability *row = row_of(t, at);
    json_t *list = json_array();
    for (int k = 1; k <= t->options.n_alternatives; k++) {
        if (row[k].id >= 0) {
            json_array_append_new(list, token_json(q, row[k], says(q, t->g.ids.ids[at - 1], row[k].id)));
        }
    }
    return list;
}

static json_t *prompt_json(const struct tgi *q, const struct generation_text *t)
{
    json_t *list = json_array();
    for (size_t i = 0; q->tells_prompt && i < t->g.n_prompt; i++) {
        const struct token_probability *row = row_of(t, i);
        int32_t id = t->g.ids.ids[i], before = i > 0 ? t->g.ids.ids[i - 1] : -1;
        json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "id", (int)id, "text", says(q, before, id),
                                              "logprob",
                                              row == NULL ? json_null() : json_finite((double)row[0].log_p)));
    }
    return list;
}

/* The end of a text, with the seed where tokens were drawn. */
static json_t *end_json(const struct tgi *q, const struct generation_text *t)
{
    const struct generation *g = &t->g;
    return json_pack("{s:s, s:I, s:o}", "finish_reason", end_name(g->end), "generated_tokens",
                     (json_int_t)(g->ids.n - g->n_prompt), "seed",
                     q->samples ? json_integer((json_int_t)q->q.options.seed) : json_null());
}

static json_t *details_json(const struct tgi *q, const struct generation_text *t)
{
    json_t *details = end_json(q, t), *tokens = json_array(), *top = json_array();
    const struct generation *g = &t->g;
    for (size_t i = g->n_prompt; i < g->ids.n; i++) {
        int32_t before = i > g->n_prompt ? g->ids.ids[i - 1] : -1;
        json_array_append_new(tokens, token_json(q, *row_of(t, i), says(q, before, g->ids.ids[i])));
        json_array_append_new(top, top_json(q, t, i));
    }
    json_object_set_new(details, "prefill", prompt_json(q, t));
    json_object_set_new(details, "tokens", tokens);
    if (t->options.n_alternatives > 0) {
        json_object_set_new(details, "top_tokens", top);
    } else {
        json_decref(top);
    }
    return details;
}

static json_t *text_json(const struct tgi *q, const struct generation_text *t)
{
    struct buf text = {0};
    if (q->returns_prompt) {
        buf_append(&text, t->prompt->text.bytes, t->prompt->text.n);
    }
    buf_append(&text, buf_text(&t->g.text), t->g.text.n);
    json_t *said = text.failed ? NULL : answer_json_said(buf_text(&text), text.n);
    buf_fini(&text);
    return said;
}

/* Runs in the engine's thread: an event for each token. */
static void told(void *self, struct generation *g)
{
    struct call *c = self;
    struct tgi *q = c->state;
    struct generation_text *t = (struct generation_text *)g;
    bool has_ended = g->end != GENERATION_GOES_ON;
    if (g->end == GENERATION_FAILED || g->end == GENERATION_CANCELLED) {
        return;
    }
    json_t *token = token_json(q, *row_of(t, g->ids.n - 1), generation_text_take(t));
    json_t *event = json_pack("{s:I, s:o, s:o, s:o}", "index", (json_int_t)(g->ids.n - g->n_prompt), "token",
                              token, "generated_text", has_ended ? text_json(q, t) : json_null(), "details",
                              has_ended ? end_json(q, t) : json_null());
    if (has_ended) {
        json_object_set_new(json_object_get(event, "details"), "input_length",
                            json_integer((json_int_t)g->n_prompt));
    }
    if (t->options.n_alternatives > 0) {
        json_object_set_new(event, "top_tokens", top_json(q, t, g->ids.n - 1));
    }
    call_stream_json(c, CALL_EVENTS, event);
}

static void finish(struct call *c)
{
    struct tgi *q = c->state;
    const struct generation_text *t = q->q.texts;
    if (!generation_call_is_whole(c)) {
        return;
    }
    if (q->streams) {
        call_stream_end(c, true);
        return;
    }
    json_t *reply = json_pack("{s:o}", "generated_text", text_json(q, t));
    if (q->tells_tokens) {
        json_object_set_new(reply, "details", details_json(q, t));
    }
    call_reply(c, q->is_list ? json_pack("[o]", reply) : reply);
}

static void fail_length(struct call *c, int64_t most, int64_t n_prompt, int64_t n_new)
{
    call_fail_value(
        c, "inputs",
        "`inputs` tokens + `max_new_tokens` must be <= %lld. Given: %lld `inputs` tokens and %lld "
        "`max_new_tokens`",
        (long long)most, (long long)n_prompt, (long long)n_new);
}

static void begin(struct call *c, bool streams, bool is_list)
{
    struct tgi *q = generation_call_create(c, sizeof *q, NULL);
    if (q == NULL) {
        return;
    }
    q->streams = streams;
    q->is_list = is_list;
    q->q.fail_length = fail_length;
    if (read(c)) {
        generation_call_submit(c, streams ? told : NULL, finish);
    }
}

/* Forms of the answer. */
enum { WHOLE, STREAM };

static void answer(struct call *c)
{
    begin(c, c->form == STREAM, false);
}

void tgi_answer(struct call *c)
{
    bool streams = false;
    if (call_bool(c, c->body, "stream", &streams)) {
        begin(c, streams, true);
    }
}

const struct endpoint tgi_endpoints[] = {
    {"POST", "/generate", &dialect_tei, answer, .form = WHOLE},
    {"POST", "/generate_stream", &dialect_tei, answer, .form = STREAM},
    {0},
};
