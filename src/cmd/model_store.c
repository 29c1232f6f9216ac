#include "cmd/model_store.h"

#include <stdlib.h>
#include <string.h>

struct status model_store_directory(char path[FILE_PATH_BYTES])
{
    const char *own = getenv("KILN_MODELS"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own != NULL && own[0] != '\0') {
        return file_make_path(path, "%s", own);
    }
    if (cache != NULL && cache[0] == '/') {
        return file_make_path(path, "%s/kiln/models", cache);
    }
    FAIL_IF(home == NULL || home[0] != '/', STATUS_USAGE,
            "there is no directory of models: set KILN_MODELS, or HOME, whose .cache/kiln/models it then is");
    return file_make_path(path, "%s/.cache/kiln/models", home);
}

/* One value, NAME or, for `kiln serve`, ALIAS=NAME; a path stays as it is. */
static void find_one(const char **model, const char *directory, struct words *paths)
{
    char path[2 * FILE_PATH_BYTES];
    const char *equals = *model == NULL ? NULL : strchr(*model, '=');
    const char *name = equals == NULL ? *model : equals + 1;
    if (name == NULL || name[0] == '\0' || strchr("./<", name[0]) != NULL || strstr(name, "..") != NULL ||
        file_exists(*model) || file_exists(name)) {
        return;
    }
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (file_is_directory(path)) {
        words_add(paths, "%.*s%s", (int)(name - *model), *model, path);
        *model = paths->failed ? *model : paths->owned[paths->n - 1];
    }
}

struct status model_store_find(const struct command *c, void *args, struct words *paths)
{
    char directory[FILE_PATH_BYTES];
    if (failed(model_store_directory(directory))) {
        return status_ok();
    }
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        void *field = (char *)args + o->offset;
        bool is_model = strcmp(o->name, "model") == 0 || strcmp(o->name, "init_checkpoint") == 0;
        if (is_model && o->kind == OPTION_STRING && o->choices == NULL) {
            find_one(field, directory, paths);
        } else if (is_model && o->kind == OPTION_WORDS) {
            struct option_words *words = field;
            for (int i = 0; i < words->n; i++) {
                find_one(&words->of[i], directory, paths);
            }
        }
    }
    return words_status(paths);
}
