#include "text/chat_template.h"

#include "io/file.h"
#include "text/jinja_renderer.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"

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

static json_t *special_of(const struct tokenizer *tokenizer)
{
    json_t *special = json_object();
    special_tokens_put_texts(special, tokenizer);
    return special;
}

static struct status open_file(struct chat_template *t, const char *path, const struct tokenizer *tokenizer)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    struct status s =
        chat_template_parse(t, map.n == 0 ? "" : (const char *)map.data, map.n, special_of(tokenizer));
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

static struct status open_config(struct chat_template *t, bool *exists, const char *path,
                                 const struct tokenizer *tokenizer)
{
    struct file_map map;
    json_t *config;
    TRY(file_map_open(&map, path));
    struct status s = json_parse_real(&config, map.n == 0 ? "" : (const char *)map.data, map.n, path);
    file_map_close(&map);
    TRY(s);
    const json_t *text = find_default(json_object_get(config, "chat_template"));
    *exists = json_is_string(text);
    if (*exists) {
        s = chat_template_parse(t, json_string_value(text), json_string_length(text), special_of(tokenizer));
    }
    json_decref(config);
    return s;
}

struct status chat_template_open(struct chat_template *t, bool *exists, const char *directory,
                                 const struct tokenizer *tokenizer)
{
    static const char *const names[] = {"chat_template.jinja", TOKENIZER_CONFIG_NAME};
    *t = (struct chat_template){0};
    *exists = false;
    for (int i = 0; i < 2; i++) {
        char path[FILE_PATH_BYTES];
        int n = snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (n < FILE_PATH_BYTES && file_exists(path)) {
            *exists = i == 0;
            return i == 0 ? open_file(t, path, tokenizer) : open_config(t, exists, path, tokenizer);
        }
    }
    return status_ok();
}

/* ---- rendering ---- */

struct status chat_template_render(struct buf *out, const struct chat_template *t, const json_t *messages,
                                   bool add_generation_prompt)
{
    json_t *globals = json_pack("{s:O, s:b, s:n, s:n}", "messages", messages, "add_generation_prompt",
                                add_generation_prompt, "tools", "documents");
    bool ok = globals != NULL && json_object_update(globals, t->special) == 0;
    struct status s = ok ? jinja_renderer_run(out, &t->tree, globals, &limits)
                         : status_error(STATUS_MEMORY, "out of memory for a chat");
    json_decref(globals);
    return in_template(s);
}
