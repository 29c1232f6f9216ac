#include "model/model_family.h"

#include "core/buf.h"
#include "model/gguf_config.h"

#include <stdlib.h>
#include <string.h>

static bool has_type(const struct model_family *f, const char *type)
{
    const char *const *known = f->model_types;
    while (*known != NULL && strcmp(*known, type) != 0) {
        known++;
    }
    return *known != NULL;
}

static struct status refuse(const char *type, const char *source)
{
    struct buf known = {0};
    for (size_t i = 0; model_families[i] != NULL; i++) {
        bool again = model_families[i]->owns != NULL; /* a later row has the same types */
        for (const char *const *t = model_families[i]->model_types; !again && *t != NULL; t++) {
            buf_printf(&known, "%s%s", known.n > 0 ? ", " : "", *t);
        }
    }
    struct status s = status_error(STATUS_DATA, "%s: \"model_type\" is \"%.60s\", but kiln knows only: %s",
                                   source, type, buf_text(&known));
    buf_fini(&known);
    return s;
}

/* The family of a config.json without a type, as all were until 2019. */
static const struct model_family *family_by_keys(const json_t *config)
{
    for (size_t i = 0; model_families[i] != NULL; i++) {
        const char *key = model_families[i]->own_key;
        if (key != NULL && json_object_get(config, key) != NULL) {
            return model_families[i];
        }
    }
    return model_families[0];
}

struct status model_family_find(const struct model_family **family, const json_t *config, const char *source)
{
    const char *type = NULL;
    *family = model_families[0];
    if (!json_is_null(json_object_get(config, "model_type"))) {
        TRY(json_get_string(config, source, "model_type", false, &type));
    }
    if (type == NULL) {
        *family = family_by_keys(config);
        return status_ok();
    }
    for (size_t i = 0; model_families[i] != NULL; i++) {
        const struct model_family *f = model_families[i];
        if (has_type(f, type) && (f->owns == NULL || f->owns(config))) {
            *family = model_families[i];
            return status_ok();
        }
    }
    return refuse(type, source);
}

struct status model_family_parse_config(const struct model_family **family, void **config, const json_t *root,
                                        const char *source)
{
    *config = NULL;
    TRY(model_family_find(family, root, source));
    *config = calloc(1, (*family)->config_bytes);
    struct status s = *config == NULL ? status_error(STATUS_MEMORY, "out of memory for %s", source)
                                      : (*family)->parse_config(*config, root, source);
    if (failed(s)) {
        free(*config);
        *config = NULL;
    }
    return s;
}

/* The configuration in the keys of a GGUF file. */
static struct status read_gguf(const struct model_family **family, void **config, json_t **root,
                               const char *path)
{
    struct gguf_file f;
    TRY(gguf_file_open_keys(&f, path));
    struct status s = gguf_config_read(root, family, &f, path);
    gguf_file_close(&f);
    TRY(s);
    const struct model_family *of = *family; /* a relative, perhaps, that the values tell apart */
    return gguf_config_in_words(model_family_parse_config(family, config, *root, path), of);
}

static struct status read_json(const struct model_family **family, void **config, json_t **root,
                               const char *path)
{
    TRY(json_read_object(root, path));
    return model_family_parse_config(family, config, *root, path);
}

struct status model_family_read_config(const struct model_family **family, void **config, json_t **root,
                                       const char *path)
{
    *config = NULL;
    *root = NULL;
    struct status s = gguf_config_is_at(path) ? read_gguf(family, config, root, path)
                                              : read_json(family, config, root, path);
    if (failed(s)) {
        json_decref(*root);
        *root = NULL;
    }
    return s;
}

struct status model_family_create(struct model **model, const json_t *root, const char *source,
                                  enum model_task task)
{
    const struct model_family *family;
    void *config;
    TRY(model_family_parse_config(&family, &config, root, source));
    if (family->sizes(config).vocab_size == 0) {
        family->set_words(config, family->usual_words, family->usual_words);
    }
    struct status s = family->create(model, config, task);
    free(config);
    return s;
}

bool model_family_names_class(const json_t *config, const char *end)
{
    size_t i;
    const json_t *name;
    json_array_foreach(json_object_get(config, "architectures"), i, name)
    {
        if (json_is_string(name) && strstr(json_string_value(name), end) != NULL) {
            return true;
        }
    }
    return false;
}
