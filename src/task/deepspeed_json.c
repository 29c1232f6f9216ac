#include "task/deepspeed_json.h"

#include "core/buf.h"
#include "core/log.h"
#include "io/file.h"

#include <string.h>

/* The end of the comment that begins at text[at]; `at` itself if none does. */
static size_t comment_end(const char *text, size_t n, size_t at)
{
    bool is_line = text[at] == '#' || (at + 1 < n && memcmp(text + at, "//", 2) == 0);
    bool is_block = at + 1 < n && memcmp(text + at, "/*", 2) == 0;
    size_t end = at;
    if (is_line) {
        while (end < n && text[end] != '\n') {
            end++;
        }
    } else if (is_block) {
        for (end += 2; end < n && !(text[end - 1] == '*' && text[end] == '/' && end > at + 2);) {
            end++;
        }
        end += end < n;
    }
    return end;
}

/* Comments become blanks, so that lines and columns stay. */
static void blank_comments(char *text, size_t n)
{
    bool inside = false; /* a string */
    for (size_t i = 0; i < n; i++) {
        if (inside) {
            i += text[i] == '\\';
            inside = i >= n || text[i] != '"';
            continue;
        }
        inside = text[i] == '"';
        for (size_t end = comment_end(text, n, i); i < end; i++) {
            text[i] = text[i] == '\n' ? '\n' : ' ';
        }
    }
}

static bool is_auto(const json_t *value)
{
    return json_is_string(value) && strcmp(json_string_value(value), "auto") == 0;
}

/* Takes the values "auto" out of an object and those in it, and lists their keys. */
static void drop_auto(json_t *object, struct buf *names) /* NOLINT(misc-no-recursion): as deep as the file */
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value)
    {
        if (is_auto(value)) {
            buf_printf(names, "%s%s", names->n > 0 ? ", " : "", key);
            json_object_del(object, key);
        } else if (json_is_object(value)) {
            drop_auto(value, names);
        }
    }
}

static struct status parse(json_t **root, const char *path, const struct file_map *map)
{
    struct buf text = {0};
    buf_append(&text, map->n > 0 ? (const char *)map->data : "", map->n);
    struct status s = buf_status(&text);
    if (!failed(s)) {
        blank_comments(text.data, text.n);
        s = json_parse(root, text.data, text.n, path);
    }
    buf_fini(&text);
    if (!failed(s) && !json_is_object(*root)) {
        json_decref(*root);
        s = status_error(STATUS_DATA, "%s must be a JSON object", path);
    }
    return s;
}

struct status deepspeed_json_read(json_t **root, bool *has_auto, const char *path)
{
    struct file_map map;
    struct buf names = {0};
    TRY(file_map_open(&map, path));
    struct status s = parse(root, path, &map);
    file_map_close(&map);
    TRY(s);
    drop_auto(*root, &names);
    *has_auto = names.n > 0;
    if (names.n > 0) {
        log_warning("%s: only the Trainer of transformers fills in \"auto\"; kiln ignores these keys: %s",
                    path, buf_text(&names));
    }
    buf_fini(&names);
    return status_ok();
}
