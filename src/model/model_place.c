#include "model/model_place.h"

#include "core/log.h"
#include "io/stored_tensor.h"
#include "io/temporary.h"
#include "io/zero_folder.h"
#include "model/gguf_config.h"
#include "model/megatron_files.h"
#include "model/model_family.h"

#include <ctype.h>
#include <string.h>

bool model_place_has(char path[CHECKPOINT_PATH_BYTES], const char *directory, const char *name)
{
    return !failed(checkpoint_path(path, "%s/%s", directory, name)) && file_exists(path);
}

bool model_place_find_config(char path[CHECKPOINT_PATH_BYTES], const char *directory)
{
    bool found = model_place_has(path, directory, "config.json");
    for (size_t i = 0; !found && model_families[i] != NULL; i++) {
        const char *name = model_families[i]->old_config;
        found = name != NULL && model_place_has(path, directory, name);
    }
    return found;
}

struct status model_place_latest(char folder[CHECKPOINT_PATH_BYTES], const char *directory)
{
    return model_place_named(folder, directory, "latest");
}

struct status model_place_named(char folder[CHECKPOINT_PATH_BYTES], const char *directory, const char *file)
{
    enum { MOST_BYTES = 128 };
    char path[CHECKPOINT_PATH_BYTES], tag[MOST_BYTES] = "";
    struct file_map map;
    folder[0] = '\0';
    if (!model_place_has(path, directory, file) || file_is_directory(path)) {
        return status_ok();
    }
    TRY(file_map_open(&map, path));
    size_t n = map.n;
    while (n > 0 && isspace(map.data[n - 1])) {
        n--;
    }
    bool fits = n > 0 && n < MOST_BYTES && map.data[0] != '.' && memchr(map.data, '/', n) == NULL &&
                stored_tensor_name_is_printable((const char *)map.data, n);
    if (fits) {
        memcpy(tag, map.data, n);
    }
    file_map_close(&map);
    FAIL_IF(!fits, STATUS_DATA, "%s must hold the name of a directory beside it, as DeepSpeed writes it",
            path);
    TRY(checkpoint_path(folder, "%s/%s", directory, tag));
    return file_is_directory(folder)
               ? status_ok()
               : status_error(STATUS_DATA, "%s names the directory %s, which is missing: copy it too", path,
                              tag);
}

/* The weights of a folder of DeepSpeed; the configuration lies there or above. */
static struct status take_folder(struct model_place *p, const char *folder, const char *above)
{
    char file[CHECKPOINT_PATH_BYTES];
    bool is_megatron = model_place_has(file, folder, MEGATRON_FIRST_FILE);
    TRY(checkpoint_path(p->tensors, "%s/%s", folder, is_megatron ? MEGATRON_FIRST_FILE : ZERO_FOLDER_STATES));
    return checkpoint_path(p->directory, "%s", model_place_find_config(file, folder) ? folder : above);
}

/* The weights of a universal checkpoint; the configuration lies in the folder or above. */
static struct status take_universal(struct model_place *p, const char *folder, const char *above)
{
    char file[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(p->tensors, "%s/" MEGATRON_UNIVERSAL, folder));
    return checkpoint_path(p->directory, "%s", model_place_find_config(file, folder) ? folder : above);
}

/* Hugging Face's trainer leaves "latest" next to a model, often without its folder. */
static bool has_weights(const char *path)
{
    static const char *const names[] = {"manifest.json", "model.safetensors", "model.safetensors.index.json",
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};
    char file[CHECKPOINT_PATH_BYTES];
    bool has = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        has = has || model_place_has(file, path, names[i]);
    }
    return has;
}

/* An output directory stands for its newest checkpoint, kiln's or else DeepSpeed's; any other directory for
 * itself. */
static struct status find_in_directory(struct model_place *p, const char *path)
{
    char file[CHECKPOINT_PATH_BYTES], latest[CHECKPOINT_PATH_BYTES], above[FILE_PATH_BYTES];
    struct checkpoint newest;
    bool found;
    TRY(checkpoint_path(p->directory, "%s", path));
    if (has_weights(path)) {
        return status_ok();
    }
    file_parent(above, path);
    if (model_place_has(file, path, MEGATRON_UNIVERSAL)) {
        return take_universal(p, path, above);
    }
    if (model_place_has(file, path, MEGATRON_FIRST_FILE)) {
        return take_folder(p, path, above);
    }
    TRY(model_place_latest(latest, path));
    if (latest[0] == '\0') {
        TRY(model_place_named(latest, path, "latest_universal"));
        if (latest[0] != '\0') {
            return take_universal(p, latest, path);
        }
    }
    if (latest[0] == '\0' && model_place_has(file, path, "model.gguf") && gguf_config_is_at(file)) {
        TRY(checkpoint_path(p->tensors, "%s", file));
        return checkpoint_path(p->directory, "%s", file);
    }
    if (latest[0] == '\0' && model_place_find_config(file, path)) {
        return status_ok();
    }
    TRY(checkpoint_dir_open_newest(&newest, path, &found));
    if (!found) {
        if (latest[0] != '\0') {
            log_info("%s: its newest checkpoint is %s", path, latest);
        }
        return latest[0] == '\0' ? status_ok() : take_folder(p, latest, path);
    }
    log_info("%s: its newest checkpoint is %s", path, newest.path);
    TRY(checkpoint_path(p->directory, "%s", newest.path));
    checkpoint_close(&newest);
    return status_ok();
}

/* The configuration of a file lies next to it; that of a folder's files may lie next to the folder. */
static struct status find_beside(struct model_place *p, const char *path)
{
    char folder[FILE_PATH_BYTES], above[FILE_PATH_BYTES], file[CHECKPOINT_PATH_BYTES];
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    file_parent(folder, path);
    file_parent(above, folder);
    bool is_of_folder = strcmp(name, ZERO_FOLDER_STATES) == 0 || strcmp(name, MEGATRON_FIRST_FILE) == 0;
    bool is_above =
        is_of_folder && !model_place_find_config(file, folder) && model_place_find_config(file, above);
    return checkpoint_path(p->directory, "%s", is_above ? above : folder);
}

bool model_place_of_script(char directory[CHECKPOINT_PATH_BYTES], const char *path)
{
    size_t n = strlen(path);
    if (n < 3 || strcmp(path + n - 3, ".pt") != 0 || file_exists(path) ||
        failed(checkpoint_path(directory, "%s", path))) {
        return false;
    }
    directory[n - 3] = '\0';
    return file_is_directory(directory);
}

struct status model_place_find(struct model_place *p, const char *path)
{
    char aside[TEMPORARY_PATH_BYTES], index[CHECKPOINT_PATH_BYTES], own[CHECKPOINT_PATH_BYTES];
    *p = (struct model_place){0};
    FAIL_IF(temporary_find_aside(aside, path), STATUS_DATA,
            "%s is missing: a run that died while it replaced the directory left it as %s; rename that", path,
            aside);
    if (model_place_of_script(own, path)) {
        log_info("there is no %s: %s of a run of kiln is taken", path, own);
        return find_in_directory(p, own);
    }
    if (file_is_directory(path)) {
        return find_in_directory(p, path);
    }
    TRY(checkpoint_path(index, "%s.index", path));
    FAIL_IF(!file_exists(path) && !file_exists(index), STATUS_DATA,
            "%s is not a directory with a config.json, a file of tensors (.pt, .bin, "
            ".safetensors, .gguf) or the prefix of a TensorFlow checkpoint",
            path);
    TRY(checkpoint_path(p->tensors, "%s", path));
    return gguf_config_is_at(path) ? checkpoint_path(p->directory, "%s", path) : find_beside(p, path);
}

bool model_place_is_gguf(const struct model_place *p)
{
    return p->tensors[0] != '\0' && strcmp(p->tensors, p->directory) == 0;
}
