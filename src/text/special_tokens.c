#include "text/special_tokens.h"

#include "core/log.h"
#include "io/file.h"
#include "text/tokenizer_files.h"

#include <stdio.h>
#include <string.h>

static const char *const text_keys[SPECIAL_COUNT] = {
    [SPECIAL_PAD] = "pad_token",   [SPECIAL_UNKNOWN] = "unk_token", [SPECIAL_BEGIN] = "bos_token",
    [SPECIAL_END] = "eos_token",   [SPECIAL_CLASS] = "cls_token",   [SPECIAL_SEPARATOR] = "sep_token",
    [SPECIAL_MASK] = "mask_token",
};

/* Keys of config.json; a model has no use for the other tokens. */
static const char *const id_keys[SPECIAL_COUNT] = {
    [SPECIAL_PAD] = "pad_token_id", [SPECIAL_BEGIN] = "bos_token_id", [SPECIAL_END] = "eos_token_id"};

/* Reads a file of the directory; *root is NULL if there is none. */
static struct status open_file(json_t **root, char path[FILE_PATH_BYTES], const char *directory,
                               const char *name)
{
    struct file_map map;
    *root = NULL;
    if (snprintf(path, FILE_PATH_BYTES, "%s/%s", directory, name) >= FILE_PATH_BYTES || !file_exists(path)) {
        return status_ok();
    }
    TRY(file_map_open(&map, path));
    struct status s = json_parse_real(root, map.n == 0 ? "" : (const char *)map.data, map.n, path);
    file_map_close(&map);
    return s;
}

/* ---- tokens by their texts ---- */

/* A text, or an object that describes the token. */
static const char *text_of(const json_t *value)
{
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static void take_texts(struct tokenizer *t, const json_t *root, const char *path)
{
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        const char *text = text_of(json_object_get(root, text_keys[i]));
        int32_t id = text == NULL ? -1 : tokenizer_find(t, text, strlen(text));
        if (text != NULL && id < 0) {
            log_warning("%s: \"%s\" is '%.60s', which is no token of the vocabulary, and not used", path,
                        text_keys[i], text);
        }
        t->special[i] = id >= 0 ? id : t->special[i];
    }
}

static struct status read_texts(struct tokenizer *t, const char *directory)
{
    char path[FILE_PATH_BYTES];
    json_t *root;
    TRY(open_file(&root, path, directory, TOKENIZER_CONFIG_NAME));
    bool is_whole = json_object_get(root, "added_tokens_decoder") != NULL;
    take_texts(t, root, path);
    json_decref(root);
    if (is_whole) {
        return status_ok();
    }
    TRY(open_file(&root, path, directory, "special_tokens_map.json"));
    take_texts(t, root, path);
    json_decref(root);
    return status_ok();
}

/* ---- tokens by their ids ---- */

/* -1: the value is no id of the vocabulary, as GPT-2's 50256 of a smaller one. */
static int32_t id_of(const struct tokenizer *t, const json_t *value)
{
    double id = json_number_value(value);
    return json_is_number(value) && id >= 0 && id < t->n ? (int32_t)id : -1;
}

static void add_end(struct tokenizer *t, int32_t id)
{
    if (id >= 0 && t->n_ends < TOKENIZER_MOST_ENDS) {
        t->ends[t->n_ends++] = id;
    }
}

static void take_ends(struct tokenizer *t, const json_t *root)
{
    const json_t *ends = json_object_get(root, id_keys[SPECIAL_END]);
    for (size_t i = 0; i < json_array_size(ends); i++) {
        add_end(t, id_of(t, json_array_get(ends, i)));
    }
    add_end(t, id_of(t, ends));
}

/* said[] gets what the file says and no file before it said; the first end is that of documents. */
static void take_ids(struct tokenizer *t, int32_t said[SPECIAL_COUNT], const json_t *root)
{
    if (t->n_ends == 0) {
        take_ends(t, root);
    }
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        if (id_keys[i] != NULL && i != SPECIAL_END && said[i] < 0) {
            said[i] = id_of(t, json_object_get(root, id_keys[i]));
        }
    }
    said[SPECIAL_END] = t->n_ends > 0 ? t->ends[0] : -1;
}

static struct status read_ids(struct tokenizer *t, int32_t said[SPECIAL_COUNT], const char *directory)
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[FILE_PATH_BYTES];
        json_t *root;
        TRY(open_file(&root, path, directory, names[i]));
        take_ids(t, said, root);
        json_decref(root);
    }
    return status_ok();
}

static bool is_special(const struct tokenizer *t, int32_t id)
{
    const struct added_token *added = id < 0 ? NULL : added_tokens_of(&t->added, id);
    return added != NULL && added->special;
}

/* A vocabulary may not say which of its tokens are special: then any may be. */
static bool knows_specials(const struct tokenizer *t)
{
    int i = 0;
    while (i < t->added.n && !t->added.tokens[i].special) {
        i++;
    }
    return i < t->added.n;
}

/* A config.json often has the ids of its class, which in another vocabulary are any pieces. */
static void use_ids(struct tokenizer *t, const int32_t said[SPECIAL_COUNT])
{
    bool knows = knows_specials(t);
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        if (t->special[i] < 0 && (!knows || is_special(t, said[i]))) {
            t->special[i] = said[i];
        }
    }
}

/* ---- tokens by their names ---- */

static int32_t find_name(const struct tokenizer *t, const char *name)
{
    return name == NULL ? -1 : tokenizer_find(t, name, strlen(name));
}

/* Sets special tokens by their usual names.  A vocabulary with both names of a token leaves it open which is
 * meant: none is set. */
static void take_names(struct tokenizer *t)
{
    for (int i = 0; i < SPECIAL_COUNT && t->kind->special_names != NULL; i++) {
        const char *const *names = t->kind->special_names[i];
        int32_t first = find_name(t, names[0]), second = find_name(t, names[1]);
        bool is_clear = first < 0 || second < 0 || first == second;
        if (t->special[i] < 0 && is_clear) {
            t->special[i] = first >= 0 ? first : second;
        }
    }
}

struct status special_tokens_find(struct tokenizer *t, const char *directory)
{
    int32_t said[SPECIAL_COUNT];
    memset(said, -1, sizeof said);
    if (directory != NULL && t->n > 0) {
        TRY(read_texts(t, directory));
        TRY(read_ids(t, said, directory));
    }
    use_ids(t, said);
    take_names(t);
    if (t->n_ends == 0) {
        add_end(t, t->special[SPECIAL_END]);
    }
    return tokenizer_close_added(t);
}

struct status special_tokens_set_end(struct tokenizer *t, const char *text, const char *flag)
{
    int32_t id = tokenizer_find(t, text, strlen(text));
    FAIL_IF(id < 0, STATUS_USAGE, "--%s is '%.60s', which is no token of the vocabulary", flag, text);
    t->special[SPECIAL_END] = t->ends[0] = id;
    t->n_ends = 1;
    return status_ok();
}

/* ---- for files ---- */

void special_tokens_put_texts(json_t *object, const struct tokenizer *t)
{
    static const enum special_token order[SPECIAL_COUNT] = {SPECIAL_BEGIN,     SPECIAL_END, SPECIAL_UNKNOWN,
                                                            SPECIAL_SEPARATOR, SPECIAL_PAD, SPECIAL_CLASS,
                                                            SPECIAL_MASK}; /* order of transformers */
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        int32_t id = t->special[order[i]];
        if (id >= 0 && id < t->n) { /* an unknown vocabulary pads with 0, but has no token */
            size_t n;
            const char *text = tokenizer_piece(t, id, &n);
            json_object_set_new(object, text_keys[order[i]], json_stringn(text, n));
        }
    }
}

static json_t *ends_to_json(const struct tokenizer *t)
{
    json_t *list = json_array();
    for (int i = 0; i < t->n_ends; i++) {
        json_array_append_new(list, json_integer(t->ends[i]));
    }
    json_t *ends = t->n_ends == 0  ? json_null()
                   : t->n_ends > 1 ? json_incref(list)
                                   : json_integer(t->ends[0]);
    json_decref(list);
    return ends;
}

void special_tokens_put_ids(json_t *object, const struct tokenizer *t)
{
    bool of_decoder = t->kind->decodes_bytes;
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        if (id_keys[i] != NULL && i != SPECIAL_END && t->special[i] >= 0) {
            json_object_set_new(object, id_keys[i], json_integer(t->special[i]));
        }
    }
    if (of_decoder && t->special[SPECIAL_BEGIN] < 0) {
        json_object_set_new(object, id_keys[SPECIAL_BEGIN], json_null());
    }
    if (of_decoder || t->n_ends > 0) {
        json_object_set_new(object, id_keys[SPECIAL_END], ends_to_json(t));
    }
}
