#include "data/gpt/answer_examples.h"

#include "core/integers.h"
#include "corpus/text_reader.h"
#include "data/text_ids.h"
#include "text/jinja_renderer.h"
#include "text/utf8.h"

#include <stdio.h>

/* ---- an example ---- */

/* An example that is being made. */
struct making {
    struct answer_reading *reading;
    struct id_list ids;
    struct buf ends; /* int64_t, of the complete parts */
};

static void making_fini(struct making *m)
{
    id_list_fini(&m->ids);
    buf_fini(&m->ends);
}

/* Ends a part: the tokens that were appended since the end of the last one. */
static void end_part(struct making *m)
{
    int64_t end = (int64_t)m->ids.n;
    buf_append(&m->ends, &end, sizeof end);
}

/* Appends a context, and an answer. */
static struct status add_turn(struct making *m, const char *context, size_t n_context, const char *answer,
                              size_t n_answer)
{
    TRY(tokenizer_encode_ids(m->reading->scratch, &m->ids, context, n_context));
    end_part(m);
    TRY(tokenizer_encode_ids(m->reading->scratch, &m->ids, answer, n_answer));
    end_part(m);
    return buf_status(&m->ends);
}

/* Appends the token that ends a text to the last answer, unless it has one. */
static struct status end_answer(struct making *m)
{
    const struct tokenizer *t = m->reading->scratch->tokenizer;
    int64_t *ends = (int64_t *)(void *)m->ends.data, n = (int64_t)(m->ends.n / sizeof *ends);
    bool has_end = t->special[SPECIAL_END] < 0;
    for (int64_t i = ends[n - 2]; i < ends[n - 1] && !has_end; i++) {
        has_end = tokenizer_ends(t, m->ids.ids[i]);
    }
    FAIL_IF(!has_end && !id_list_append(&m->ids, t->special[SPECIAL_END]), STATUS_MEMORY,
            "out of memory for an example");
    ends[n - 1] = (int64_t)m->ids.n;
    return status_ok();
}

/* Cuts what is above the limit, and all that follows the last answer. */
static void cut(struct answer_example *e, int64_t *ends, int64_t limit)
{
    for (int64_t k = 0; k < e->n_parts; k++) {
        ends[k] = int_smaller(ends[k], limit);
    }
    while (e->n_parts > 0 && ends[e->n_parts - 1] == ends[e->n_parts - 2]) {
        e->n_parts -= 2;
    }
}

/* Tokens with a loss: those of answers, but for the first of all, which follows nothing. */
static int64_t count_learned(const struct answer_example *e)
{
    int64_t n = 0;
    for (int64_t k = 1; k < e->n_parts; k += 2) {
        n += e->ends[k] - int_larger(e->ends[k - 1], 1);
    }
    return n;
}

static struct status take(const struct making *m)
{
    struct answer_reading *r = m->reading;
    int64_t *ends = (int64_t *)(void *)m->ends.data;
    struct answer_example e = {
        .ids = m->ids.ids, .ends = ends, .n_parts = (int64_t)(m->ends.n / sizeof *ends)};
    bool is_long = ends[e.n_parts - 1] > r->limit;
    cut(&e, ends, r->limit);
    int64_t n_learned = e.n_parts > 0 ? count_learned(&e) : 0;
    r->counts.n_without += n_learned <= 0;
    if (n_learned <= 0) {
        return status_ok();
    }
    r->counts.n_cut += is_long;
    r->counts.n_examples++;
    r->counts.n_tokens += ends[e.n_parts - 1];
    r->counts.n_learned += n_learned;
    r->counts.longest = int_larger(r->counts.longest, ends[e.n_parts - 1]);
    return r->take(r->self, &e);
}

/* ---- a prompt and its completion ---- */

static struct status make_completion(struct making *m, const json_t *prompt, const json_t *completion)
{
    size_t n = json_string_length(completion);
    FAIL_IF(n == 0, STATUS_DATA, "\"completion\" is empty: there is nothing to learn");
    TRY(input_specials_append(&m->ids, &m->reading->scratch->tokenizer->frame.one.before));
    TRY(add_turn(m, json_string_value(prompt), json_string_length(prompt), json_string_value(completion), n));
    return end_answer(m);
}

/* ---- messages ---- */

/* Whether the assistant's message i is learned, of those from `first` on. */
static bool learns(const json_t *messages, size_t i, size_t first)
{
    const json_t *weight = json_object_get(json_array_get(messages, i), "weight");
    return i >= first && !(json_is_number(weight) && json_number_value(weight) == 0);
}

static struct status add_answers(struct making *m, const struct buf *text, const struct jinja_span *spans,
                                 const json_t *messages, size_t first)
{
    size_t at = 0, i;
    const json_t *message;
    json_array_foreach(messages, i, message)
    {
        if (!chat_messages_answers(message)) {
            continue;
        }
        if (learns(messages, i, first)) {
            TRY(add_turn(m, buf_text(text) + at, spans->begin - at, buf_text(text) + spans->begin,
                         spans->end - spans->begin));
            at = spans->end;
        }
        spans++;
    }
    return m->ends.n > 0 ? end_answer(m) : status_ok();
}

/* Each answer is an example of its own, the last of which is left in `m`. */
static struct status add_answers_apart(struct making *m, const json_t *read, const json_t *messages,
                                       size_t first)
{
    struct buf text = {0};
    struct status s = status_ok();
    for (size_t i = first; i < json_array_size(read) && !failed(s); i++) {
        struct jinja_span span;
        if (!chat_messages_answers(json_array_get(read, i)) || !learns(messages, i, first)) {
            continue;
        }
        s = m->ends.n > 0 ? take(m) : s;
        m->ids.n = 0;
        buf_clear(&m->ends);
        buf_clear(&text);
        s = failed(s) ? s : chat_template_render_answer(&text, &span, m->reading->chat, read, i);
        s = failed(s) ? s
                      : add_turn(m, buf_text(&text), span.begin, buf_text(&text) + span.begin,
                                 span.end - span.begin);
        s = failed(s) ? s : end_answer(m);
    }
    buf_fini(&text);
    return s;
}

/* The assistant's messages from `first` on are answers. */
static struct status make_chat(struct making *m, const json_t *messages, size_t first)
{
    struct buf text = {0}, spans = {0};
    json_t *read;
    bool are_apart;
    TRY(m->reading->chat != NULL ? status_ok() : m->reading->no_chat);
    TRY(chat_messages_read(&read, messages));
    struct status s = chat_template_render_answers(&text, &spans, &are_apart, m->reading->chat, read);
    s = failed(s) ? s
        : are_apart
            ? add_answers_apart(m, read, messages, first)
            : add_answers(m, &text, (const struct jinja_span *)(const void *)spans.data, messages, first);
    if (!failed(s) && m->ends.n == 0) {
        s = status_error(STATUS_DATA,
                         "no message is an answer of the assistant's: there is nothing to learn");
    }
    json_decref(read);
    buf_fini(&text);
    buf_fini(&spans);
    return s;
}

static struct status make_chat_of_two(struct making *m, json_t *prompt, json_t *completion)
{
    json_t *messages = json_copy(prompt);
    json_array_extend(messages, completion);
    struct status s = make_chat(m, messages, json_array_size(prompt));
    json_decref(messages);
    return s;
}

/* ---- lines ---- */

/* Says which keys a line has, in place of those that are wanted. */
static struct status refuse_keys(const json_t *line, const char *wanted)
{
    struct buf keys = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)line, key, value)
    {
        buf_printf(&keys, "%s\"%.40s\"", keys.n > 0 ? ", " : "", key);
    }
    struct status s = status_error(STATUS_DATA, "the line has neither %.160s, but %.200s", wanted,
                                   keys.n > 0 ? buf_text(&keys) : "no key");
    buf_fini(&keys);
    return s;
}

static struct status check_field(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    FAIL_IF(value == NULL, STATUS_DATA, "\"%s\" is missing: a prompt and its completion belong together",
            key);
    FAIL_IF(!json_is_string(value) && !json_is_array(value), STATUS_DATA,
            "\"%s\" is %s, but must be a text, or a list of messages", key,
            json_is_null(value) ? "null" : jinja_operator_type(value));
    return status_ok();
}

static struct status make(struct making *m, const json_t *line)
{
    json_t *prompt = json_object_get(line, "prompt"), *completion = json_object_get(line, "completion");
    const json_t *messages = json_object_get(line, "messages");
    if (messages != NULL) {
        return make_chat(m, messages, 0);
    }
    TRY(prompt != NULL || completion != NULL
            ? status_ok()
            : refuse_keys(line, "\"prompt\" and \"completion\" nor \"messages\""));
    TRY(check_field(line, "prompt"));
    TRY(check_field(line, "completion"));
    FAIL_IF(json_typeof(prompt) != json_typeof(completion), STATUS_DATA,
            "\"prompt\" is %s, but \"completion\" is %s", jinja_operator_type(prompt),
            jinja_operator_type(completion));
    return json_is_array(prompt) ? make_chat_of_two(m, prompt, completion)
                                 : make_completion(m, prompt, completion);
}

static struct status parse(json_t **root, struct text_line line)
{
    FAIL_IF(line.continues, STATUS_DATA, "the line is longer than 16 MiB");
    *root = NULL;
    if (!failed(json_parse_text(root, line.text, line.n, "line")) && json_is_object(*root)) {
        return status_ok();
    }
    json_decref(*root);
    return status_error(STATUS_DATA, "the line is not a JSON object");
}

static struct status take_line(void *self, struct text_line line)
{
    struct making m = {.reading = self};
    json_t *root;
    TRY(parse(&root, line));
    struct status s = make(&m, root);
    s = failed(s) ? s : take(&m);
    json_decref(root);
    making_fini(&m);
    return s;
}

struct status answer_examples_read(struct answer_reading *r, const char *path)
{
    return text_ids_json_lines(path, take_line, r);
}

/* ---- the first line ---- */

static struct status find(bool *found, struct text_line line, const char *text_field)
{
    static const char *const keys[] = {"messages", "prompt", "completion"};
    char wanted[160];
    const char *text = text_field == NULL ? "text" : text_field;
    json_t *root;
    TRY(parse(&root, line));
    for (int i = 0; i < 3 && text_field == NULL; i++) {
        *found = *found || json_object_get(root, keys[i]) != NULL;
    }
    snprintf(wanted, sizeof wanted, "\"%.60s\", \"prompt\" and \"completion\", nor \"messages\"", text);
    struct status s = *found || json_object_get(root, text) != NULL ? status_ok() : refuse_keys(root, wanted);
    json_decref(root);
    return failed(s) && text_field == NULL
               ? status_error(s.code, "%.400s; --text_field names the key of a text", s.message)
               : s;
}

struct status answer_examples_found(bool *found, const char *path, const char *text_field)
{
    struct text_reader r;
    struct text_line line = {0};
    bool end = false;
    *found = false;
    text_reader_init(&r);
    struct status s = text_reader_open(&r, path, 0, NULL, false);
    while (!failed(s) && !end && line.n == 0) {
        s = text_reader_next(&r, &line, &end);
    }
    s = failed(s) || end
            ? s
            : status_context(find(found, line, text_field), "%s line %lld", path, (long long)r.line);
    text_reader_fini(&r);
    return s;
}

/* ---- to look at ---- */

/* Appends a text on one line, of a long one both ends. */
static void show_text(struct buf *out, const char *text, size_t n)
{
    enum { SHOWN = 160 };
    utf8_append_excerpt(out, text, n, SHOWN);
    size_t at = int_larger(n > SHOWN ? (int64_t)n - SHOWN / 2 : (int64_t)n, SHOWN);
    while (at < n && ((unsigned char)text[at] & 0xC0) == 0x80) {
        at++;
    }
    utf8_append_excerpt(out, text + (at < n ? at : n), at < n ? n - at : 0, SHOWN);
}

struct status answer_examples_show(struct buf *out, const struct tokenizer *t, const struct answer_example *e)
{
    struct buf text = {0}, repaired = {0};
    struct status s = status_ok();
    for (int64_t k = 0, at = 0; k < e->n_parts && !failed(s); at = e->ends[k++]) {
        buf_clear(&text);
        s = tokenizer_decode(t, &text, e->ids + at, (size_t)(e->ends[k] - at));
        buf_clear(&repaired);
        utf8_repair(&repaired, buf_text(&text), text.n); /* a cut example may end within a character */
        buf_puts(out, k % 2 == 1 ? ">>>" : "");
        show_text(out, buf_text(&repaired), repaired.n);
        buf_puts(out, k % 2 == 1 ? "<<<" : "");
    }
    buf_fini(&text);
    buf_fini(&repaired);
    return failed(s) ? s : buf_status(out);
}
