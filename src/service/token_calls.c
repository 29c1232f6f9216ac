/* token_calls: /tokenize, /detokenize and /decode.  Three servers have a /tokenize, which differ in the field
 * of the text: `prompt` in vLLM, `content` in llama.cpp, `inputs` in text-embeddings-inference. */
#include "serve/answer_json.h"
#include "service/endpoints.h"
#include "serve/token_text.h"
#include "text/tokenizer_files.h"
#include "text/utf8.h"

#include <stdint.h>
#include <stdlib.h>

enum { MOST_TEXTS = 2048 };

/* The start of a token that stands for no bytes of the text. */
#define NOWHERE SIZE_MAX

/* ---- tokens of a text ---- */

static struct status append_specials(struct token_list *out, const struct input_specials *s)
{
    for (int i = 0; i < s->n; i++) {
        if (!token_list_append(out, (struct token){s->ids[i], NOWHERE, NOWHERE})) {
            return status_error(STATUS_MEMORY, "out of memory for tokens");
        }
    }
    return status_ok();
}

/* The special tokens around a text: for a decoder, only those before it. */
static struct status frame_of(struct input_form *form, const struct served_model *m)
{
    const struct tokenizer *t = m->model.tokenizer;
    struct input_frame frame;
    *form = (struct input_form){0};
    if (m->model.dir.task == MODEL_TASK_CAUSAL_LM) {
        form->before = t->frame.one.before;
        return status_ok();
    }
    TRY(tokenizer_frame(&frame, t, "a text with special tokens"));
    *form = frame.one;
    return status_ok();
}

static struct status encode_with(struct tokenizer_scratch *scratch, struct token_list *out,
                                 const struct served_model *m, const char *text, size_t n, bool adds_special)
{
    struct input_form form = {0};
    TRY(adds_special ? frame_of(&form, m) : status_ok());
    TRY(append_specials(out, &form.before));
    TRY(tokenizer_encode(scratch, out, text, n));
    return append_specials(out, &form.after);
}

/* False: the call has failed. */
static bool encode(struct call *c, struct token_list *out, struct served_model *m, const char *text, size_t n,
                   bool adds_special)
{
    struct tokenizer_scratch *scratch;
    struct status s = served_model_take_scratch(m, &scratch);
    *out = (struct token_list){0};
    if (!failed(s)) {
        s = encode_with(scratch, out, m, text, n, adds_special);
        served_model_give_scratch(m, scratch);
    }
    if (failed(s)) {
        token_list_fini(out);
        call_fail_status(c, NULL, s);
        return false;
    }
    c->n_texts++;
    c->n_characters += utf8_count(text, n);
    c->n_tokens += (int64_t)out->n;
    return true;
}

static json_t *piece_json(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const char *piece = tokenizer_piece(t, id, &n);
    return answer_json_said(piece, n);
}

/* ---- /tokenize ---- */

static void tokenize_vllm(struct call *c)
{
    const char *name = NULL, *text = "";
    bool adds_special = true, tells_pieces = false;
    struct token_list list;
    c->dialect = &dialect_openai;
    if (!call_string(c, c->body, "model", &name) || !call_string(c, c->body, "prompt", &text) ||
        !call_bool(c, c->body, "add_special_tokens", &adds_special) ||
        !call_bool(c, c->body, "return_token_strs", &tells_pieces)) {
        return;
    }
    struct served_model *m = call_any_model(c, name);
    size_t n = json_string_length(json_object_get(c->body, "prompt"));
    if (m == NULL || !encode(c, &list, m, text, n, adds_special)) {
        return;
    }
    json_t *ids = json_array(), *pieces = json_array();
    for (size_t i = 0; i < list.n; i++) {
        json_array_append_new(ids, json_integer(list.tokens[i].id));
        json_array_append_new(pieces, piece_json(m->model.tokenizer, list.tokens[i].id));
    }
    json_t *reply = json_pack("{s:I, s:I, s:o, s:o}", "count", (json_int_t)list.n, "max_model_len",
                              (json_int_t)m->model.max_length, "tokens", ids, "token_strs",
                              tells_pieces ? json_incref(pieces) : json_null());
    json_decref(pieces);
    token_list_fini(&list);
    call_reply(c, reply);
}

/* A piece that is a part of a character is an array of bytes. */
static json_t *piece_or_bytes(const struct tokenizer *t, int32_t id)
{
    size_t n;
    const char *piece = tokenizer_piece(t, id, &n);
    if (utf8_find_invalid(piece, n) == n) {
        return json_stringn(piece, n);
    }
    json_t *bytes = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(bytes, json_integer((unsigned char)piece[i]));
    }
    return bytes;
}

static void tokenize_llama(struct call *c)
{
    const char *text = "";
    bool adds_special = false, tells_pieces = false;
    struct token_list list;
    c->dialect = &dialect_openai;
    if (!call_string(c, c->body, "content", &text) || !call_bool(c, c->body, "add_special", &adds_special) ||
        !call_bool(c, c->body, "with_pieces", &tells_pieces)) {
        return;
    }
    struct served_model *m = call_any_model(c, NULL);
    size_t n = json_string_length(json_object_get(c->body, "content"));
    if (m == NULL || !encode(c, &list, m, text, n, adds_special)) {
        return;
    }
    json_t *tokens = json_array();
    for (size_t i = 0; i < list.n; i++) {
        int32_t id = list.tokens[i].id;
        json_array_append_new(tokens, !tells_pieces ? json_integer(id)
                                                    : json_pack("{s:i, s:o}", "id", (int)id, "piece",
                                                                piece_or_bytes(m->model.tokenizer, id)));
    }
    token_list_fini(&list);
    call_reply(c, json_pack("{s:o}", "tokens", tokens));
}

/* [{"id", "text", "special", "start", "stop"}, ...] with places in bytes, as in TEI. */
static json_t *places_json(const struct served_model *m, const struct token_list *list, const char *text)
{
    json_t *tokens = json_array();
    for (size_t i = 0; i < list->n; i++) {
        struct token k = list->tokens[i];
        bool is_special = k.start == NOWHERE;
        json_array_append_new(tokens,
                              json_pack("{s:i, s:o, s:b, s:o, s:o}", "id", (int)k.id, "text",
                                        is_special ? piece_json(m->model.tokenizer, k.id)
                                                   : answer_json_said(text + k.start, k.end - k.start),
                                        "special", is_special, "start",
                                        is_special ? json_null() : json_integer((json_int_t)k.start), "stop",
                                        is_special ? json_null() : json_integer((json_int_t)k.end)));
    }
    return tokens;
}

/* Tokenizes one text after the model's prompt. */
static json_t *tokenize_one(struct call *c, struct served_model *m, struct text_bytes text,
                            const char *prompt, bool adds_special)
{
    struct buf whole = {0};
    struct token_list list = {0};
    json_t *tokens = NULL;
    buf_puts(&whole, prompt);
    buf_append(&whole, text.bytes, text.n);
    if (encode(c, &list, m, buf_text(&whole), whole.n, adds_special)) {
        tokens = places_json(m, &list, buf_text(&whole));
        token_list_fini(&list);
    }
    buf_fini(&whole);
    return tokens;
}

/* The prompt of a sentence model; other models have none. */
static bool find_prompt(struct call *c, const struct served_model *m, const char **prompt)
{
    const char *name = NULL;
    const struct sentence_model *sentence =
        m->lanes[ANSWER_EMBED] == NULL ? NULL : m->sessions[ANSWER_EMBED].sentence;
    *prompt = "";
    if (!call_string(c, c->body, "prompt_name", &name)) {
        return false;
    }
    if (sentence == NULL) {
        if (name != NULL) {
            call_fail_value(c, "prompt_name", "the model %s has no prompts", m->name);
        }
        return name == NULL;
    }
    struct status s = sentence_model_prompt(sentence, name, prompt);
    if (failed(s)) {
        call_fail_status(c, "prompt_name", s);
    }
    return !failed(s);
}

static void tokenize_tei(struct call *c)
{
    struct text_bytes *texts;
    size_t n;
    bool adds_special = true;
    const char *prompt;
    struct served_model *m = call_any_model(c, NULL);
    if (m == NULL || !call_bool(c, c->body, "add_special_tokens", &adds_special) ||
        !find_prompt(c, m, &prompt) || !call_texts(c, c->body, "inputs", MOST_TEXTS, &texts, &n)) {
        return;
    }
    json_t *reply = json_array(), *tokens = reply;
    for (size_t i = 0; i < n && tokens != NULL; i++) {
        tokens = tokenize_one(c, m, texts[i], prompt, adds_special);
        json_array_append_new(reply, tokens);
    }
    free(texts);
    if (tokens == NULL) { /* the call has failed */
        json_decref(reply);
    } else {
        call_reply(c, reply);
    }
}

static void tokenize(struct call *c)
{
    if (json_object_get(c->body, "prompt") != NULL) {
        tokenize_vllm(c);
    } else if (json_object_get(c->body, "content") != NULL) {
        tokenize_llama(c);
    } else {
        tokenize_tei(c);
    }
}

/* Replies, as vLLM, with the tokenizer's configuration, where lm-evaluation-harness finds the token that ends
 * a text. */
static void tell_tokenizer(struct call *c)
{
    const struct served_model *m = call_any_model(c, NULL);
    if (m != NULL) {
        call_reply(c, tokenizer_files_config(m->model.tokenizer, m->model.max_length));
    }
}

/* ---- and back ---- */

/* The text of the ids; NULL: the call has failed. */
static json_t *decode(struct call *c, const struct served_model *m, const json_t *value, const char *name,
                      bool skips_special)
{
    struct id_list ids = {0};
    json_t *said = NULL;
    if (!json_is_array(value)) {
        call_fail_value(c, name, "\"%s\" must be an array of ids", name);
    } else if (call_ids(c, &ids, m, value, name)) {
        struct buf text = {0};
        token_text_append(&text, m->model.tokenizer, ids.ids, ids.n, skips_special);
        c->n_tokens += (int64_t)ids.n;
        said = token_text_to_json(&text);
        if (said == NULL) {
            call_fail_status(c, NULL, status_error(STATUS_MEMORY, "out of memory for a text"));
        }
    }
    id_list_fini(&ids);
    return said;
}

/* Replies in the forms of vLLM and llama.cpp: their requests are the same. */
static void detokenize(struct call *c)
{
    const char *name = NULL;
    const json_t *ids = json_object_get(c->body, "tokens");
    if (!call_string(c, c->body, "model", &name)) {
        return;
    }
    const struct served_model *m = call_any_model(c, name);
    if (m == NULL) {
        return;
    }
    json_t *text = decode(c, m, ids, "tokens", false);
    if (text != NULL) {
        call_reply(c, json_pack("{s:o, s:O}", "prompt", text, "content", text));
    }
}

/* TEI's: an array of ids, or of arrays of them; always an array of texts. */
static void decode_tei(struct call *c)
{
    const json_t *ids = json_object_get(c->body, "ids");
    bool skips_special = true, is_one = !json_is_array(json_array_get(ids, 0));
    const struct served_model *m = call_any_model(c, NULL);
    if (m == NULL || !call_bool(c, c->body, "skip_special_tokens", &skips_special)) {
        return;
    }
    if (!json_is_array(ids) || json_array_size(ids) == 0) {
        call_fail_value(c, "ids", "`ids` must be an array of ids, or of arrays of ids, that is not empty");
        return;
    }
    json_t *reply = json_array(), *text = reply;
    for (size_t i = 0; i < (is_one ? 1 : json_array_size(ids)) && text != NULL; i++) {
        text = decode(c, m, is_one ? ids : json_array_get(ids, i), "ids", skips_special);
        json_array_append_new(reply, text);
    }
    if (text == NULL) {
        json_decref(reply);
    } else {
        call_reply(c, reply);
    }
}

const struct endpoint token_calls_endpoints[] = {
    {"POST", "/tokenize", &dialect_tei, tokenize, .is_open = false},
    {"GET", "/tokenizer_info", &dialect_openai, tell_tokenizer, .is_open = false},
    {"POST", "/detokenize", &dialect_openai, detokenize, .is_open = false},
    {"POST", "/decode", &dialect_tei, decode_tei, .is_open = false},
    {0},
};
