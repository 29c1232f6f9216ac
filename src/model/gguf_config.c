#include "model/gguf_config.h"

#include "core/buf.h"

#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 96 };

static const char *full_key(char key[KEY_BYTES], const struct model_family_gguf *of, const char *name)
{
    snprintf(key, KEY_BYTES, "%s.%s", of->architecture, name);
    return key;
}

bool gguf_config_is_at(const char *path)
{
    struct gguf_file f;
    if (!gguf_file_is_at(path)) {
        return false;
    }
    if (failed(gguf_file_open_keys(&f, path))) {
        return true;
    }
    bool is_whole = gguf_file_find(&f, "general.architecture") != NULL;
    gguf_file_close(&f);
    return is_whole;
}

/* ---- values of config.json, of which some are in an object of their own ---- */

/* The name of the value within *object, which becomes the inner object; NULL there: it is absent. */
static const char *descend(json_t **object, const char *key, bool makes)
{
    char outer[KEY_BYTES];
    const char *dot = strchr(key, '.');
    if (dot == NULL) {
        return key;
    }
    snprintf(outer, sizeof outer, "%.*s", (int)(dot - key), key);
    if (makes && !json_is_object(json_object_get(*object, outer))) {
        json_object_set_new(*object, outer, json_object());
    }
    *object = json_object_get(*object, outer);
    return dot + 1;
}

static const json_t *get(json_t *config, const char *key)
{
    const char *name = descend(&config, key, false);
    return json_object_get(config, name);
}

static struct status set(json_t *config, const char *key, json_t *value)
{
    const char *name = descend(&config, key, true);
    return json_object_set_new(config, name, value) == 0
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a configuration");
}

/* ---- reading ---- */

static struct status find_family(const struct model_family **family, const struct gguf_file *f,
                                 const char *source)
{
    const struct gguf_pair *pair = gguf_file_find(f, "general.architecture");
    json_t *name = pair == NULL ? NULL : gguf_pair_to_json(pair);
    const char *architecture = json_is_string(name) ? json_string_value(name) : "";
    struct buf known = {0};
    *family = NULL;
    for (size_t i = 0; model_families[i] != NULL; i++) {
        const struct model_family_gguf *of = model_families[i]->gguf;
        bool is_it = of != NULL && strcmp(of->architecture, architecture) == 0;
        *family = is_it && *family == NULL ? model_families[i] : *family;
        if (of != NULL && (known.n == 0 || strstr(buf_text(&known), of->architecture) == NULL)) {
            buf_printf(&known, "%s%s", known.n > 0 ? ", " : "", of->architecture);
        }
    }
    struct status s =
        *family != NULL
            ? status_ok()
            : status_error(STATUS_DATA,
                           "%s: general.architecture is \"%.60s\", but of GGUF kiln reads only: %s", source,
                           architecture, buf_text(&known));
    buf_fini(&known);
    json_decref(name);
    return s;
}

static bool fits(const json_t *value, enum gguf_value wanted)
{
    switch (wanted) {
    case GGUF_VALUE_U32: return json_is_integer(value);
    case GGUF_VALUE_F32: return json_is_number(value);
    case GGUF_VALUE_TEXT: return json_is_string(value);
    default: return json_is_boolean(value);
    }
}

static const char *name_of(enum gguf_value wanted)
{
    switch (wanted) {
    case GGUF_VALUE_U32: return "an integer";
    case GGUF_VALUE_F32: return "a finite number";
    case GGUF_VALUE_TEXT: return "a text";
    default: return "true or false";
    }
}

/* A value that follows from another one must; where the other is absent, it gives that. */
static struct status compare(json_t *config, const struct model_family_gguf_key *row, const char *key,
                             const json_t *value, const char *source)
{
    const json_t *of = get(config, row->key);
    json_int_t n = json_integer_value(value), times = row->times;
    if (of == NULL && times == 1) {
        return set(config, row->key, json_integer(n));
    }
    FAIL_IF(json_integer_value(of) * times != n, STATUS_DATA,
            "%s: %s is %lld, but kiln has this architecture with %lld only, by the other keys", source, key,
            (long long)n, (long long)(json_integer_value(of) * times));
    return status_ok();
}

static struct status take_value(json_t *config, const struct model_family_gguf_key *row, const char *key,
                                json_t *value, const char *source)
{
    bool is_ok = fits(value, row->type);
    struct status s =
        !is_ok ? status_error(STATUS_DATA, "%s: %s must be %s, and no list", source, key, name_of(row->type))
        : row->times > 0 ? compare(config, row, key, value, source)
                         : set(config, row->key, json_incref(value));
    json_decref(value);
    return s;
}

static struct status read_rows(json_t *config, const struct model_family_gguf *of, const struct gguf_file *f,
                               const char *source)
{
    for (const struct model_family_gguf_key *row = of->keys; row->name != NULL; row++) {
        char key[KEY_BYTES];
        const struct gguf_pair *p = gguf_file_find(f, full_key(key, of, row->name));
        FAIL_IF(p == NULL && row->use == GGUF_KEY_NEEDED, STATUS_DATA,
                "%s has no key %s, without which its model is not known", source, key);
        if (p != NULL && row->key != NULL) {
            TRY(take_value(config, row, key, gguf_pair_to_json(p), source));
        }
    }
    return status_ok();
}

/* Without a key of their own the rows of the vocabulary are the tokens, of which some may be unused. */
static struct status take_words(json_t *config, const struct gguf_file *f)
{
    const struct gguf_pair *tokens = gguf_file_find(f, "tokenizer.ggml.tokens");
    return tokens == NULL || !tokens->is_list || json_object_get(config, "vocab_size") != NULL
               ? status_ok()
               : set(config, "vocab_size", json_integer((json_int_t)tokens->n));
}

static bool is_known(const struct model_family_gguf *of, const char *name)
{
    const struct model_family_gguf_key *row = of->keys;
    while (row->name != NULL && strcmp(row->name, name) != 0) {
        row++;
    }
    return row->name != NULL;
}

static struct status check_known(const struct model_family_gguf *of, const struct gguf_file *f,
                                 const char *source)
{
    size_t n = strlen(of->architecture);
    for (int i = 0; i < f->n_pairs; i++) {
        const char *key = f->pairs[i].key;
        bool is_own = strncmp(key, of->architecture, n) == 0 && key[n] == '.';
        FAIL_IF(is_own && !is_known(of, key + n + 1), STATUS_DATA,
                "%s has the key %.80s, which kiln does not read of %s models: it may make another network",
                source, key, of->architecture);
    }
    return status_ok();
}

static struct status check_whole(const struct gguf_file *f, const char *source)
{
    const struct gguf_pair *count = gguf_file_find(f, "split.count");
    double n = count == NULL || count->is_list ? 1 : gguf_pair_number(count, 0);
    FAIL_IF(n > 1, STATUS_DATA,
            "%s is one of %g files of a model (split.count); kiln reads a model in one file: join them with "
            "gguf-split --merge of llama.cpp",
            source, n);
    return status_ok();
}

struct status gguf_config_read(json_t **config, const struct model_family **family, const struct gguf_file *f,
                               const char *source)
{
    *config = NULL;
    TRY(check_whole(f, source));
    TRY(find_family(family, f, source));
    const struct model_family_gguf *of = (*family)->gguf;
    *config = json_pack("{s:s}", "model_type", (*family)->model_types[0]);
    FAIL_IF(*config == NULL, STATUS_MEMORY, "out of memory for the configuration of %s", source);
    struct status s = read_rows(*config, of, f, source);
    s = failed(s) ? s : take_words(*config, f);
    s = failed(s) || of->after_read == NULL ? s : of->after_read(*config, f, source);
    s = failed(s) ? s : check_known(of, f, source);
    if (failed(s)) {
        json_decref(*config);
        *config = NULL;
    }
    return s;
}

/* ---- the errors of the parser ---- */

/* Replaces "KEY" in a message by GGUF's key. */
static void replace(struct status *s, const struct model_family_gguf *of,
                    const struct model_family_gguf_key *row)
{
    char quoted[KEY_BYTES], key[KEY_BYTES], old[sizeof s->message];
    const char *dot = strrchr(row->key, '.');
    snprintf(quoted, sizeof quoted, "\"%s\"", dot == NULL ? row->key : dot + 1);
    char *at = strstr(s->message, quoted);
    if (at != NULL) {
        memcpy(old, s->message, sizeof old);
        snprintf(at, sizeof s->message - (size_t)(at - s->message), "%s%s", full_key(key, of, row->name),
                 old + (at - s->message) + strlen(quoted));
    }
}

struct status gguf_config_in_words(struct status s, const struct model_family *family)
{
    const struct model_family_gguf_key *row = family->gguf->keys;
    for (; failed(s) && row->name != NULL; row++) {
        if (row->key != NULL && row->times == 0) {
            replace(&s, family->gguf, row);
        }
    }
    return s;
}

/* ---- writing ---- */

static void put_value(struct gguf_writer *w, const char *key, const struct model_family_gguf_key *row,
                      const json_t *value)
{
    int64_t times = row->times > 0 ? row->times : 1;
    switch (row->type) {
    case GGUF_VALUE_U32: gguf_put_u32(w, key, (uint32_t)(json_integer_value(value) * times)); break;
    case GGUF_VALUE_F32: gguf_put_f32(w, key, (float)json_number_value(value)); break;
    case GGUF_VALUE_TEXT: gguf_put_text(w, key, json_string_value(value)); break;
    default: gguf_put_bool(w, key, json_is_true(value)); break;
    }
}

struct status gguf_config_put(struct gguf_writer *w, const struct model_family *family, const void *config)
{
    const struct model_family_gguf *of = family->gguf;
    json_t *root = family->config_to_json(config, MODEL_TASK_CAUSAL_LM);
    FAIL_IF(root == NULL, STATUS_MEMORY, "out of memory for a configuration");
    struct status s = of->before_write == NULL ? status_ok() : of->before_write(root, config);
    for (const struct model_family_gguf_key *row = of->keys; !failed(s) && row->name != NULL; row++) {
        char key[KEY_BYTES];
        const json_t *value = row->key == NULL || row->use == GGUF_KEY_READ ? NULL : get(root, row->key);
        if (fits(value, row->type)) {
            put_value(w, full_key(key, of, row->name), row, value);
        }
    }
    json_decref(root);
    return s;
}
