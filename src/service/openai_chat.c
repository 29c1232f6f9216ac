/* openai_chat: POST /v1/chat/completions of OpenAI: the messages become a prompt by the model's chat template
 * (text/chat_template.h), which is continued as one of /v1/completions is.  Tools, sounds and answers of a
 * given form are refused by name. */
#include "serve/answer_json.h"
#include "service/endpoints.h"
#include "service/openai_generation.h"

#include <string.h>

/* Clients fall back to completions on the sentence of vLLM and transformers. */
static bool check_template(struct call *c, const struct served_model *m)
{
    if (m->has_chat) {
        return true;
    }
    if (failed(m->why_no_chat)) {
        call_fail(c, 400, "messages",
                  "the model '%s' has a chat template that kiln cannot read (%s): use /v1/completions with a "
                  "prompt "
                  "of that form",
                  m->name, m->why_no_chat.message);
    } else {
        call_fail(
            c, 400, "messages",
            "As of transformers v4.44, default chat template is no longer allowed, so you must provide a "
            "chat template if the tokenizer does not define one. The model '%s' has none: use "
            "/v1/completions",
            m->name);
    }
    return false;
}

static bool make_prompt(struct call *c)
{
    struct openai_generation *q = c->state;
    json_t *messages;
    struct buf text = {0};
    struct status s = chat_messages_read(&messages, json_object_get(c->body, "messages"));
    s = failed(s) ? s : chat_template_render(&text, &q->q.m->chat, messages, true);
    bool ok = !failed(s) && generation_call_take_prompt(c, &text);
    if (failed(s)) {
        call_fail_status(c, "messages", s);
    }
    buf_fini(&text);
    json_decref(messages);
    return ok;
}

/* ---- other fields ---- */

static bool is_word(const json_t *value, const char *word)
{
    return json_is_string(value) && strcmp(json_string_value(value), word) == 0;
}

/* Whether a field asks for nothing that kiln cannot do: is empty, or as it is where nobody asks. */
static bool asks_nothing(const char *key, const json_t *value)
{
    bool is_empty = json_is_array(value) && json_array_size(value) == 0;
    bool is_text =
        json_is_array(value) && json_array_size(value) == 1 && is_word(json_array_get(value, 0), "text");
    return value == NULL || is_empty || is_word(value, "none") || is_word(value, "auto") ||
           (strcmp(key, "modalities") == 0 && is_text) ||
           (strcmp(key, "response_format") == 0 && is_word(json_object_get(value, "type"), "text"));
}

static bool check_refused(struct call *c)
{
    static const char *const refused[] = {"tools",         "tool_choice",       "functions",
                                          "function_call", "response_format",   "audio",
                                          "modalities",    "web_search_options"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (!asks_nothing(refused[i], call_field(c->body, refused[i]))) {
            call_fail_value(c, refused[i], "%s is not supported: kiln answers messages with plain text",
                            refused[i]);
            return false;
        }
    }
    return true;
}

static bool read_log_p(struct call *c)
{
    struct openai_generation *q = c->state;
    bool rates = false;
    int64_t n = 0;
    if (!call_bool(c, c->body, "logprobs", &rates) ||
        !call_int(c, c->body, "top_logprobs", 0, GENERATE_ALTERNATIVES, &n)) {
        return false;
    }
    if (n > 0 && !rates) {
        call_fail_value(c, "top_logprobs", "top_logprobs is for logprobs: true alone");
        return false;
    }
    q->n_log_p = rates ? n : -1;
    q->q.options.rates = rates;
    q->q.options.n_alternatives = (int)n;
    return true;
}

static bool read(struct call *c)
{
    struct openai_generation *q = c->state;
    const char *limit =
        call_field(c->body, "max_completion_tokens") != NULL ? "max_completion_tokens" : "max_tokens";
    q->q.options.max_new_tokens = INT32_MAX; /* all that fit */
    return check_template(c, q->q.m) && check_refused(c) && openai_generation_read(c) && read_log_p(c) &&
           generation_call_read_limit(c, c->body, limit, 1) && make_prompt(c);
}

/* ---- answers ---- */

/* Reports the tokens that were not reported; JSON's null: nobody asks. */
static json_t *log_p_json(const struct openai_generation *q, struct generation_text *t)
{
    const struct generation *g = &t->g;
    if (q->n_log_p < 0) {
        return json_null();
    }
    json_t *report = openai_generation_report(q->q.m->model.tokenizer, g, t->n_sent_tokens);
    t->n_sent_tokens = g->ids.n - g->n_prompt;
    return report;
}

static json_t *whole_choice(struct call *c, struct generation_text *t)
{
    return json_pack("{s:I, s:{s:s, s:o, s:n}, s:o, s:s?}", "index", (json_int_t)t->number, "message", "role",
                     "assistant", "content", generation_text_take(t), "refusal", "logprobs",
                     log_p_json(c->state, t), "finish_reason", generation_end_name(t->g.end));
}

/* Sends what is new of a text. */
static void send_delta(struct call *c, const struct generation_text *t, json_t *delta, json_t *log_p,
                       const char *end)
{
    openai_generation_send(c, json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)t->number, "delta",
                                        delta, "logprobs", log_p, "finish_reason", end));
}

/* Runs in the engine's thread.  The role, the text and the reason of its end are events of their own. */
static void told(void *self, struct generation *g)
{
    struct call *c = self;
    struct openai_generation *q = c->state;
    struct generation_text *t = (struct generation_text *)g;
    bool has_failed = g->end == GENERATION_FAILED || g->end == GENERATION_CANCELLED;
    bool has_tokens = q->n_log_p >= 0 && g->ids.n > g->n_prompt + t->n_sent_tokens;
    if (has_failed) {
        return;
    }
    if (!t->has_begun) {
        send_delta(c, t, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), json_null(), NULL);
        t->has_begun = true;
    }
    if (g->n_settled > t->n_sent || has_tokens) {
        json_t *said = generation_text_take(t);
        send_delta(c, t, json_pack("{s:o}", "content", said), log_p_json(q, t), NULL);
    }
    if (g->end != GENERATION_GOES_ON) {
        send_delta(c, t, json_object(), json_null(), generation_end_name(g->end));
    }
}

static void answer(struct call *c)
{
    struct openai_generation *q =
        openai_generation_create(c, sizeof *q, "messages", "chat.completion", "chatcmpl-");
    if (q != NULL && read(c)) {
        q->object = q->streams ? "chat.completion.chunk" : q->object;
        q->choice = whole_choice;
        openai_generation_submit(c, told);
    }
}

const struct endpoint openai_chat_endpoints[] = {
    {"POST", "/v1/chat/completions", &dialect_openai, answer, .is_open = false},
    {"POST", "/chat/completions", &dialect_openai, answer, .is_open = false},
    {0},
};
