#include "fetch/hub_list.h"

#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* A path of at most two names, without one that begins with a dot. */
static bool is_plain(const char *path)
{
    size_t n = strspn(path, letters), m = path[n] == '/' ? strspn(path + n + 1, letters) : 0;
    return n > 0 && path[0] != '.' && (path[n] == '\0' || (m > 0 && path[n + 1] != '.')) &&
           path[n + (m > 0 ? m + 1 : 0)] == '\0' && strlen(path) < 200;
}

bool hub_name_is_valid(const char *name)
{
    return is_plain(name);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* Whether it is one of the endings, up to a NULL. */
static bool ends_in(const char *text, const char *const *endings)
{
    while (*endings != NULL && !ends_with(text, *endings)) {
        endings++;
    }
    return *endings != NULL;
}

static const char *const other_weights[] = {".bin",  ".pt",      ".pth", ".ckpt", ".pkl",  ".h5",
                                            ".onnx", ".msgpack", ".ot",  ".gguf", ".data", NULL};

/* model.safetensors, or a part of it, but no variant such as model.fp16.safetensors. */
static bool is_weights(const char *name)
{
    return strcmp(name, "model.safetensors") == 0 ||
           (strncmp(name, "model-", 6) == 0 && ends_with(name, ".safetensors"));
}

static bool is_wanted(const char *path)
{
    static const char *const endings[] = {".json", ".txt", ".model", ".md", NULL};
    const char *slash = strchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    bool is_of_module =
        slash == NULL || (strspn(path, "0123456789") > 0 && path[strspn(path, "0123456789")] == '_');
    return is_plain(path) && is_of_module &&
           (is_weights(name) || strcmp(name, "LICENSE") == 0 ||
            (ends_in(name, endings) && !ends_in(name, other_weights)));
}

static const char *name_at(const struct hub_list *list, size_t i, const json_t **file)
{
    *file = json_array_get(json_object_get(list->root, "siblings"), i);
    return json_string_value(json_object_get(*file, "rfilename"));
}

struct status hub_list_open(struct hub_list *list, const char *path)
{
    const char *name, *other = NULL;
    const json_t *file;
    bool has_config = false, has_weights = false;
    *list = (struct hub_list){0};
    TRY(json_read_object(&list->root, path));
    TRY(json_get_string(list->root, path, "sha", true, &list->commit));
    FAIL_IF(!is_plain(list->commit) || strchr(list->commit, '/') != NULL, STATUS_DATA,
            "%s: \"sha\" is '%.60s', which is no commit", path, list->commit);
    for (size_t i = 0; (name = name_at(list, i, &file)) != NULL; i++) {
        has_config = has_config || strcmp(name, "config.json") == 0;
        has_weights = has_weights || is_weights(name);
        other = other == NULL && ends_in(name, other_weights) ? name : other;
    }
    FAIL_IF(!has_config, STATUS_DATA, "%s lists no config.json: the repository is no model for kiln", path);
    FAIL_IF(
        !has_weights && other != NULL, STATUS_DATA,
        "%s lists %.80s, but no model.safetensors: kiln downloads neither pickles, which may run code, nor "
        "formats that it does not read; fetch such a file by --url if you trust it, and kiln convert reads "
        "one of PyTorch without running it",
        path, other);
    FAIL_IF(!has_weights, STATUS_DATA, "%s lists no model.safetensors", path);
    return status_ok();
}

bool hub_list_next(struct hub_list *list, struct hub_file *out)
{
    const json_t *file;
    const char *name;
    while ((name = name_at(list, list->at++, &file)) != NULL) {
        const json_t *bytes = json_object_get(file, "size");
        *out = (struct hub_file){
            .name = name,
            .sha256 = json_string_value(json_object_get(json_object_get(file, "lfs"), "sha256")),
            .bytes = json_is_integer(bytes) ? json_integer_value(bytes) : -1,
        };
        if (is_wanted(name)) {
            return true;
        }
    }
    return false;
}

void hub_list_close(struct hub_list *list)
{
    json_decref(list->root);
    *list = (struct hub_list){0};
}
