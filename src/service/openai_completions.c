/* openai_completions: POST /v1/completions of OpenAI, with what vLLM adds: sampling by top_k, min_p and
 * repetition_penalty, and ignore_eos.  With echo and logprobs it reports how probable a text is, as
 * lm-evaluation-harness asks. */
#include "serve/answer_json.h"
#include "service/endpoints.h"
#include "service/openai_generation.h"
#include "text/utf8.h"

#include <string.h>

enum { DEFAULT_NEW_TOKENS = 16, MOST_BEST_OF = 128, MOST_LOG_PROBABILITIES = 5 };

struct completion {
    struct openai_generation g; /* first */
    bool echoes;
};

/* ---- what is asked ---- */

/* Fields that change nothing may be there; fields that kiln does not support are refused by name. */
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
    if (best_of != q->g.q.n) {
        call_fail_value(c, "best_of",
                        "best_of is %lld, and n is %lld: texts are not chosen among, ask for as "
                        "many as you want by n",
                        (long long)best_of, (long long)q->g.q.n);
        return false;
    }
    return true;
}

/* The model is chosen before. */
static bool read(struct call *c)
{
    struct completion *q = c->state;
    const json_t *b = c->body;
    struct generate_options *o = &q->g.q.options;
    int64_t best_of = -1;
    o->max_new_tokens = DEFAULT_NEW_TOKENS;
    if (!openai_generation_read(c) || !call_bool(c, b, "echo", &q->echoes) ||
        !call_int(c, b, "best_of", 0, MOST_BEST_OF, &best_of) ||
        !call_int(c, b, "logprobs", 0, MOST_LOG_PROBABILITIES, &q->g.n_log_p) ||
        !generation_call_read_limit(c, b, "max_tokens", 0) ||
        !check_refused(c, best_of == -1 ? q->g.q.n : best_of)) {
        return false;
    }
    o->rates = q->g.n_log_p >= 0;
    o->rates_prompt = (o->rates && q->echoes) || o->max_new_tokens == 0;
    o->n_alternatives = o->rates ? (int)q->g.n_log_p : 0;
    return generation_call_read_prompts(c, b, "prompt");
}

/* ---- how probable tokens are ---- */

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
            openai_generation_spell(&token, NULL, t, before, p.id);
            if (json_object_get(top, buf_text(&token)) == NULL) {
                json_object_set_new(top, buf_text(&token), openai_generation_log_p(p));
            }
        }
    }
    buf_fini(&token);
    return top;
}

/* Reports the tokens that were not reported; the first of a text has no token before it, and so no
 * probability. */
static json_t *log_p_json(struct completion *q, struct generation_text *t)
{
    const struct tokenizer *tokenizer = q->g.q.m->model.tokenizer;
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
        openai_generation_spell(&token, &t->uncounted, tokenizer, before, g->ids.ids[i]);
        t->n_characters += take_characters(&t->uncounted);
        json_array_append_new(tokens, json_string(buf_text(&token)));
        json_array_append_new(own, row == NULL ? json_null() : openai_generation_log_p(row[0]));
        json_array_append_new(top, row == NULL ? json_null() : top_of(row, n, tokenizer, before));
    }
    t->n_sent_tokens = g->ids.n - first;
    buf_fini(&token);
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", own, "top_logprobs", top,
                     "text_offset", offsets);
}

/* ---- answers ---- */

/* The part of a text that was not sent; its prompt comes first. */
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
        text.failed |= failed(tokenizer_decode_text(q->g.q.m->model.tokenizer, &text, p->ids.ids, p->ids.n));
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
                     q->g.n_log_p >= 0 ? log_p_json(q, t) : json_null(), "finish_reason",
                     generation_end_name(t->g.end));
}

static json_t *whole_choice(struct call *c, struct generation_text *t)
{
    return choice_json(c->state, t, true);
}

/* Runs in the engine's thread.  Where tokens are reported, each is. */
static void told(void *self, struct generation *g)
{
    struct call *c = self;
    struct completion *q = c->state;
    struct generation_text *t = (struct generation_text *)g;
    bool has_failed = g->end == GENERATION_FAILED || g->end == GENERATION_CANCELLED;
    if (has_failed || !(q->g.n_log_p >= 0 || generation_text_has_news(t))) {
        return;
    }
    bool is_first = !t->has_begun;
    t->has_begun = true;
    openai_generation_send(c, choice_json(q, t, is_first));
}

static void answer(struct call *c)
{
    struct completion *q = openai_generation_create(c, sizeof *q, "prompt", "text_completion", "cmpl-");
    if (q != NULL && read(c)) {
        q->g.choice = whole_choice;
        openai_generation_submit(c, told);
    }
}

const struct endpoint openai_completions_endpoints[] = {
    {"POST", "/v1/completions", &dialect_openai, answer, .is_open = false},
    {"POST", "/completions", &dialect_openai, answer, .is_open = false},
    {0},
};
