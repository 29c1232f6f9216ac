#include "service/generation_call.h"

#include "core/entropy.h"
#include "core/integers.h"
#include "serve/answer_json.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Limits of one call, so that its memory is bounded before it is allocated. */
enum { MOST_TEXTS = 2048, MOST_STOPS = 64, MOST_NEW_TOKENS = 1 << 30 };

static void free_state(void *state)
{
    struct generation_call *q = state;
    for (size_t i = 0; i < q->n_prompts; i++) {
        id_list_fini(&q->prompts[i].ids);
    }
    for (int64_t i = 0; q->texts != NULL && i < q->n_texts; i++) {
        generation_fini(&q->texts[i].g);
        buf_fini(&q->texts[i].uncounted);
    }
    free(q->prompts);
    buf_fini(&q->own_text);
    free(q->texts);
    free(q->list);
    free(q->stops);
    free(q->biases);
    free(q);
}

static bool fail_memory(struct call *c)
{
    call_fail_status(c, NULL, status_error(STATUS_MEMORY, "out of memory for the texts of a request"));
    return false;
}

void *generation_call_create(struct call *c, size_t bytes, const char *model)
{
    struct served_model *m = call_model(c, model, ANSWER_GENERATE);
    if (m == NULL) {
        return NULL;
    }
    struct generation_call *q = call_make_state(c, bytes, free_state);
    if (q != NULL) {
        q->m = m;
        q->n = 1;
        q->options.choice =
            (struct token_choice_options){.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    }
    return q;
}

/* ---- fields ---- */

static bool make_prompts(struct call *c, size_t n)
{
    struct generation_call *q = c->state;
    q->prompts = calloc(n, sizeof *q->prompts);
    q->n_prompts = q->prompts == NULL ? 0 : n;
    return q->prompts != NULL || fail_memory(c);
}

/* A string or an array of ids. */
static bool read_prompt(struct call *c, struct generation_prompt *to, const json_t *value, const char *name)
{
    const struct generation_call *q = c->state;
    if (json_is_array(value)) {
        return call_ids(c, &to->ids, q->m, value, name);
    }
    if (!json_is_string(value)) {
        call_fail_value(c, name, "%s must be a string or an array of ids of tokens", name);
        return false;
    }
    to->text = call_text(value);
    return true;
}

bool generation_call_read_prompts(struct call *c, const json_t *o, const char *key)
{
    struct generation_call *q = c->state;
    const json_t *value = call_field(o, key);
    bool is_one = !json_is_array(value) || json_is_integer(json_array_get(value, 0));
    size_t n = is_one ? 1 : json_array_size(value);
    if (n == 0 || n > MOST_TEXTS) {
        call_fail_value(c, key, "%s has %zu prompts; it must have 1 to %d", key, n, MOST_TEXTS);
        return false;
    }
    if (!make_prompts(c, n)) {
        return false;
    }
    if (value == NULL) {
        q->prompts[0].text = (struct text_bytes){"", 0};
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, is_one ? "%s" : "%s[%zu]", key, i);
        if (!read_prompt(c, &q->prompts[i], is_one ? value : json_array_get(value, i), name)) {
            return false;
        }
    }
    return true;
}

bool generation_call_take_prompt(struct call *c, struct buf *text)
{
    struct generation_call *q = c->state;
    bool ok = make_prompts(c, 1);
    q->own_text = *text;
    *text = (struct buf){0};
    if (ok) {
        q->prompts[0].text = (struct text_bytes){buf_text(&q->own_text), q->own_text.n};
        q->prompts[0].is_framed = true;
    }
    return ok;
}

bool generation_call_read_stops(struct call *c, const json_t *o, const char *key)
{
    struct generation_call *q = c->state;
    const json_t *value = call_field(o, key);
    struct text_bytes *stops;
    size_t n;
    if (value == NULL || (json_is_array(value) && json_array_size(value) == 0)) {
        return true;
    }
    if (!call_texts(c, o, key, MOST_STOPS, &stops, &n)) {
        return false;
    }
    q->stops = calloc(n, sizeof *q->stops);
    bool is_empty = false;
    for (size_t i = 0; q->stops != NULL && i < n; i++) {
        q->stops[i] = stops[i].bytes;
        is_empty |= stops[i].n == 0;
    }
    free(stops);
    if (q->stops == NULL) {
        return fail_memory(c);
    }
    if (is_empty) {
        call_fail_value(c, key, "%s has an empty text, which would end every text", key);
        return false;
    }
    q->options.stops = q->stops;
    q->options.n_stops = (int64_t)n;
    return true;
}

bool generation_call_read_seed(struct call *c, const json_t *o, const char *key)
{
    struct generation_call *q = c->state;
    uint64_t drawn;
    if (!entropy_draw(&drawn, sizeof drawn)) {
        call_fail_status(c, NULL, status_error(STATUS_INTERNAL, "the system gives no random numbers"));
        return false;
    }
    int64_t seed = (int64_t)(drawn >> 11); /* every client's numbers hold 53 bits */
    bool ok = call_int(c, o, key, INT64_MIN, INT64_MAX, &seed);
    q->options.seed = (uint64_t)seed;
    return ok;
}

bool generation_call_read_limit(struct call *c, const json_t *o, const char *key, int64_t min)
{
    struct generation_call *q = c->state;
    q->has_limit = call_field(o, key) != NULL;
    return call_int(c, o, key, min, MOST_NEW_TOKENS, &q->options.max_new_tokens);
}

/* ---- work ---- */

/* Leaves the last tokens of a prompt that is longer than asked for. */
static void cut(struct call *c, struct generation_prompt *p)
{
    struct generation_call *q = c->state;
    size_t most = (size_t)q->most_prompt_tokens;
    if (most > 0 && p->ids.n > most) {
        memmove(p->ids.ids, p->ids.ids + p->ids.n - most, most * sizeof *p->ids.ids);
        p->ids.n = most;
        c->n_cut++;
    }
}

static bool encode(struct call *c)
{
    struct generation_call *q = c->state;
    struct tokenizer_scratch *scratch;
    struct status s = served_model_take_scratch(q->m, &scratch);
    if (failed(s)) {
        call_fail_status(c, NULL, s);
        return false;
    }
    for (size_t i = 0; i < q->n_prompts && !failed(s); i++) {
        struct generation_prompt *p = &q->prompts[i];
        if (p->text.bytes != NULL) {
            c->n_characters += utf8_count(p->text.bytes, p->text.n);
            s = p->is_framed ? tokenizer_encode_ids(scratch, &p->ids, p->text.bytes, p->text.n)
                             : tokenizer_encode_document(scratch, &p->ids, p->text.bytes, p->text.n);
        }
        cut(c, p);
    }
    served_model_give_scratch(q->m, scratch);
    if (failed(s)) {
        call_fail_status(c, NULL, s);
    }
    return !failed(s);
}

/* The number of wanted tokens that fit after a prompt.  False: they do not fit, and the call has failed. */
static bool fit(struct call *c, const struct generation_prompt *p, int64_t *n_new)
{
    struct generation_call *q = c->state;
    int64_t most = q->m->sessions[ANSWER_GENERATE].max_length, n = int_larger((int64_t)p->ids.n, 1);
    *n_new = q->has_limit ? q->options.max_new_tokens
                          : int_larger(int_smaller(q->options.max_new_tokens, most - n), 1);
    if (n + *n_new > most) {
        q->fail_length(c, most, n, *n_new);
        return false;
    }
    return true;
}

static bool make_texts(struct call *c)
{
    struct generation_call *q = c->state;
    int64_t n = q->n * (int64_t)q->n_prompts;
    if (n > MOST_TEXTS) {
        call_fail_value(c, "n", "n is %lld, for %zu prompts: a request may ask for %d texts at most",
                        (long long)q->n, q->n_prompts, MOST_TEXTS);
        return false;
    }
    q->texts = calloc((size_t)n + 1, sizeof *q->texts);
    q->list = calloc((size_t)n + 1, sizeof(void *));
    q->n_texts = n;
    return (q->texts != NULL && q->list != NULL) || fail_memory(c);
}

static bool make_text(struct call *c, int64_t number)
{
    struct generation_call *q = c->state;
    struct generation_text *t = &q->texts[number];
    const struct generation_prompt *p = &q->prompts[number / q->n];
    t->options = q->options;
    t->prompt = p;
    t->number = number;
    q->list[number] = &t->g;
    if (!fit(c, p, &t->options.max_new_tokens)) {
        return false;
    }
    struct status s = generation_init_ids(&t->g, &q->m->sessions[ANSWER_GENERATE], p->ids.ids, p->ids.n,
                                          &t->options, number % q->n + 1);
    if (failed(s)) {
        call_fail_status(c, NULL, s);
        return false;
    }
    c->n_tokens += number % q->n == 0 ? (int64_t)t->g.n_prompt : 0;
    c->work.n_tokens += (int64_t)t->g.n_prompt + t->options.max_new_tokens;
    return true;
}

void generation_call_submit(struct call *c, void (*told)(void *self, struct generation *g),
                            void (*finish)(struct call *c))
{
    struct generation_call *q = c->state;
    if (!encode(c) || !make_texts(c)) {
        return;
    }
    for (int64_t i = 0; i < q->n_texts; i++) {
        if (!make_text(c, i)) {
            return;
        }
    }
    c->n_texts = q->n_texts;
    c->work.lane = q->m->lanes[ANSWER_GENERATE];
    c->work.generations = q->list;
    c->work.n_generations = q->n_texts;
    c->work.told = told;
    call_submit(c, finish);
}

/* ---- answers ---- */

bool generation_text_has_news(const struct generation_text *t)
{
    return t->g.n_settled > t->n_sent || t->g.end != GENERATION_GOES_ON;
}

json_t *generation_text_take(struct generation_text *t)
{
    const char *text = buf_text(&t->g.text) + t->n_sent;
    size_t n = t->g.n_settled - t->n_sent;
    t->n_sent += n;
    return answer_json_said(text, n);
}

void generation_token_says(struct buf *out, const struct tokenizer *t, int32_t before, int32_t id)
{
    const int32_t both[] = {before, id};
    struct buf pair = {0};
    size_t n_before = 0;
    if (before >= 0 && !t->kind->decodes_bytes) { /* a word may depend on the one before it */
        out->failed |= failed(tokenizer_decode(t, &pair, both, 1));
        n_before = pair.n;
        buf_clear(&pair);
        out->failed |= failed(tokenizer_decode(t, &pair, both, 2));
    } else {
        out->failed |= failed(tokenizer_decode(t, &pair, &id, 1));
    }
    buf_append(out, buf_text(&pair) + int_smaller((int64_t)n_before, (int64_t)pair.n), pair.n - n_before);
    buf_fini(&pair);
}

bool generation_call_is_whole(struct call *c)
{
    const struct generation_call *q = c->state;
    for (int64_t i = 0; i < q->n_texts; i++) {
        if (failed(q->texts[i].g.status)) {
            call_fail_status(c, NULL, q->texts[i].g.status);
            return false;
        }
    }
    return true;
}

const char *generation_end_name(enum generation_end end)
{
    return end == GENERATION_GOES_ON ? NULL : end == GENERATION_AT_LENGTH ? "length" : "stop";
}
