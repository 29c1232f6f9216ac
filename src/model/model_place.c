#include "model/model_place.h"

#include "core/log.h"
#include "io/temporary.h"
#include "model/model_family.h"

#include <string.h>

bool model_place_has(char path[CHECKPOINT_PATH_BYTES], const char *directory, const char *name)
{
    return !failed(checkpoint_path(path, "%s/%s", directory, name)) && file_exists(path);
}

bool model_place_find_config(char path[CHECKPOINT_PATH_BYTES], const char *directory)
{
    bool found = model_place_has(path, directory, "config.json");
    for (size_t i = 0; !found && model_family_at(i) != NULL; i++) {
        const char *name = model_family_at(i)->old_config;
        found = name != NULL && model_place_has(path, directory, name);
    }
    return found;
}

/* An output directory stands for its newest checkpoint; any other directory for itself. */
static struct status find_in_directory(struct model_place *p, const char *path)
{
    char file[CHECKPOINT_PATH_BYTES];
    struct checkpoint newest;
    bool found;
    TRY(checkpoint_path(p->directory, "%s", path));
    if (model_place_find_config(file, path) || model_place_has(file, path, "manifest.json")) {
        return status_ok();
    }
    TRY(checkpoint_dir_open_newest(&newest, path, &found));
    if (found) {
        log_info("%s: its newest checkpoint is %s", path, newest.path);
        TRY(checkpoint_path(p->directory, "%s", newest.path));
        checkpoint_close(&newest);
    }
    return status_ok();
}

struct status model_place_find(struct model_place *p, const char *path)
{
    char aside[TEMPORARY_PATH_BYTES], index[CHECKPOINT_PATH_BYTES];
    *p = (struct model_place){0};
    if (temporary_find_aside(aside, path)) {
        return status_error(STATUS_DATA,
                            "%s is missing: a run that died while it replaced it left it as %s; rename that",
                            path, aside);
    }
    if (file_is_directory(path)) {
        return find_in_directory(p, path);
    }
    TRY(checkpoint_path(index, "%s.index", path));
    if (!file_exists(path) && !file_exists(index)) {
        return status_error(
            STATUS_DATA,
            "%s is no directory with a config.json, no file of tensors (.pt, .bin, .safetensors) and no "
            "prefix of a TensorFlow checkpoint",
            path);
    }
    const char *slash = strrchr(path, '/');
    TRY(checkpoint_path(p->tensors, "%s", path));
    return slash == NULL
               ? checkpoint_path(p->directory, ".")
               : checkpoint_path(p->directory, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}
