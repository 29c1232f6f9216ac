#include "text/chat_template.h"

#include "io/file.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"

#include <stdlib.h>
#include <string.h>

/* Far above what a model's window holds, and at most a second's work. */
static const struct jinja_limits limits = {.most_bytes = 1 << 24, .most_work = 1 << 21};

void chat_template_fini(struct chat_template *t)
{
    jinja_tree_fini(&t->tree);
    json_decref(t->special);
    *t = (struct chat_template){0};
}

/* Says where the error is: "chat_template, line 3: ...". */
static struct status in_template(struct status s)
{
    return failed(s) ? status_error(s.code, "chat_template, %.480s", s.message) : s;
}

struct status chat_template_parse(struct chat_template *t, const char *text, size_t n, json_t *special)
{
    *t = (struct chat_template){.special = special};
    struct status s = special == NULL ? status_error(STATUS_MEMORY, "out of memory for a chat")
                                      : jinja_tree_parse(&t->tree, text, n);
    if (failed(s)) {
        chat_template_fini(t);
    }
    return in_template(s);
}

/* ---- files ---- */

static struct status set_text(struct tokenizer *t, const char *text, size_t n)
{
    free(t->chat_template);
    t->chat_template = strndup(text, n);
    return t->chat_template != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a chat");
}

struct status chat_template_give(struct tokenizer *t, const char *path)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    struct status s = set_text(t, map.n == 0 ? "" : (const char *)map.data, map.n);
    file_map_close(&map);
    return s;
}

/* The string, or that of the object which is named "default"; NULL: there is none. */
static const json_t *find_default(const json_t *templates)
{
    size_t i;
    const json_t *row;
    if (json_is_string(templates)) {
        return templates;
    }
    json_array_foreach(templates, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name != NULL && strcmp(name, "default") == 0) {
            return json_object_get(row, "template");
        }
    }
    return NULL;
}

static struct status find_in_config(struct tokenizer *t, const char *path)
{
    struct file_map map;
    json_t *config;
    TRY(file_map_open(&map, path));
    struct status s = json_parse_real(&config, map.n == 0 ? "" : (const char *)map.data, map.n, path);
    file_map_close(&map);
    TRY(s);
    const json_t *text = find_default(json_object_get(config, "chat_template"));
    s = json_is_string(text) ? set_text(t, json_string_value(text), json_string_length(text)) : s;
    json_decref(config);
    return s;
}

struct status chat_template_find(struct tokenizer *t, const char *directory)
{
    static const char *const names[] = {"chat_template.jinja", TOKENIZER_CONFIG_NAME};
    for (int i = 0; i < 2; i++) {
        char path[FILE_PATH_BYTES];
        int n = snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (n < FILE_PATH_BYTES && file_exists(path)) {
            return i == 0 ? chat_template_give(t, path) : find_in_config(t, path);
        }
    }
    return status_ok();
}

struct status chat_template_open(struct chat_template *t, bool *exists, const struct tokenizer *tokenizer)
{
    json_t *special;
    *t = (struct chat_template){0};
    *exists = tokenizer->chat_template != NULL;
    if (!*exists) {
        return status_ok();
    }
    special = json_object();
    special_tokens_put_texts(special, tokenizer);
    return chat_template_parse(t, tokenizer->chat_template, strlen(tokenizer->chat_template), special);
}

/* ---- rendering ---- */

static struct status render(struct buf *out, struct buf *spans, const struct chat_template *t,
                            const json_t *messages, bool add_generation_prompt)
{
    json_t *globals = json_pack("{s:O, s:b, s:n, s:n}", "messages", messages, "add_generation_prompt",
                                add_generation_prompt, "tools", "documents");
    bool ok = globals != NULL && json_object_update(globals, t->special) == 0;
    struct status s = ok ? jinja_renderer_run(out, spans, &t->tree, globals, &limits)
                         : status_error(STATUS_MEMORY, "out of memory for a chat");
    json_decref(globals);
    return in_template(s);
}

struct status chat_template_render(struct buf *out, const struct chat_template *t, const json_t *messages,
                                   bool add_generation_prompt)
{
    return render(out, NULL, t, messages, add_generation_prompt);
}

/* ---- answers ---- */

static bool begins_with(const struct buf *text, size_t at, const struct buf *part)
{
    return text->n - at >= part->n && memcmp(buf_text(text) + at, buf_text(part), part->n) == 0;
}

struct status chat_template_render_answer(struct buf *out, struct jinja_span *span,
                                          const struct chat_template *t, const json_t *messages, size_t i)
{
    struct buf asked = {0};
    json_t *before = json_array();
    size_t at = out->n;
    for (size_t k = 0; k < i; k++) {
        json_array_append(before, json_array_get(messages, k));
    }
    struct status s = render(&asked, NULL, t, before, true);
    json_array_append(before, json_array_get(messages, i));
    s = failed(s) ? s : render(out, NULL, t, before, false);
    if (!failed(s) && (out->n - at == asked.n || !begins_with(out, at, &asked))) {
        s = status_error(
            STATUS_DATA,
            "with messages[%zu] the chat template does not continue the prompt that asks for it, "
            "so the answer cannot be told from the rest: mark it in the template by "
            "{%% generation %%} and {%% endgeneration %%}",
            i);
    }
    *span = (struct jinja_span){at + asked.n, out->n};
    json_decref(before);
    buf_fini(&asked);
    return s;
}

/* Appends the span of what message i says, in the conversation at out[at]. */
static struct status find_answer(struct buf *spans, bool *are_apart, const struct buf *out, size_t at,
                                 const struct chat_template *t, const json_t *messages, size_t i)
{
    struct buf said = {0};
    struct jinja_span span;
    struct status s = chat_template_render_answer(&said, &span, t, messages, i);
    *are_apart = *are_apart || (!failed(s) && !begins_with(out, at, &said));
    span.begin += at;
    span.end += at;
    buf_append(spans, &span, sizeof span);
    buf_fini(&said);
    return failed(s) ? s : buf_status(spans);
}

static struct status find_answers(struct buf *spans, bool *are_apart, const struct buf *out, size_t at,
                                  const struct chat_template *t, const json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages) && !*are_apart; i++) {
        if (chat_messages_answers(json_array_get(messages, i))) {
            TRY(find_answer(spans, are_apart, out, at, t, messages, i));
        }
    }
    return status_ok();
}

struct status chat_template_render_answers(struct buf *out, struct buf *spans, bool *are_apart,
                                           const struct chat_template *t, const json_t *messages)
{
    size_t at = out->n, first = spans->n, n_answers = 0;
    *are_apart = false;
    TRY(render(out, spans, t, messages, false));
    size_t n_marked = (spans->n - first) / sizeof(struct jinja_span);
    if (n_marked == 0) {
        TRY(find_answers(spans, are_apart, out, at, t, messages));
        out->n = *are_apart ? at : out->n;
        spans->n = *are_apart ? first : spans->n;
        return status_ok();
    }
    for (size_t i = 0; i < json_array_size(messages); i++) {
        n_answers += chat_messages_answers(json_array_get(messages, i));
    }
    FAIL_IF(n_marked != n_answers, STATUS_DATA,
            "the chat template marks %zu answers by {%% generation %%}, but the assistant has %zu messages",
            n_marked, n_answers);
    return buf_status(spans);
}
