#include "model/checkpoint.h"

#include "core/log.h"

#include <dirent.h>
#include <stdarg.h>
#include <string.h>

struct status checkpoint_path(char *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out, CHECKPOINT_PATH_BYTES, format, args);
    va_end(args);
    return n < 0 || n >= CHECKPOINT_PATH_BYTES
               ? status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", out,
                              CHECKPOINT_PATH_BYTES - 1)
               : status_ok();
}

static struct status parse_object(json_t **root, const struct file_map *map, const char *path)
{
    TRY(json_parse(root, map->n == 0 ? "" : (const char *)map->data, map->n, path));
    if (!json_is_object(*root)) {
        return status_error(STATUS_DATA, "%s: the top must be a JSON object {...}", path);
    }
    return status_ok();
}

static struct status open_file(struct checkpoint *c, enum checkpoint_file file)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct file_map *map = &c->files[file];
    TRY(checkpoint_path(path, "%s/%s", c->path, checkpoint_manifest_file_name(file)));
    TRY(file_map_open(map, path));
    if (c->has_manifest) {
        TRY(checkpoint_manifest_check(&c->manifest, file, map, path));
    }
    switch (file) {
    case CHECKPOINT_MODEL: return safetensors_parse(&c->model, map->data, map->n, path);
    case CHECKPOINT_OPTIMIZER: return safetensors_parse(&c->optimizer, map->data, map->n, path);
    case CHECKPOINT_FP8: return safetensors_parse(&c->fp8, map->data, map->n, path);
    case CHECKPOINT_CONFIG: return parse_object(&c->config, map, path);
    case CHECKPOINT_TOKENIZER: return parse_object(&c->tokenizer, map, path);
    case CHECKPOINT_STATE: return parse_object(&c->state, map, path);
    case CHECKPOINT_VOCAB:
    case CHECKPOINT_CHOICES:
    case CHECKPOINT_N_FILES: break;
    }
    return status_ok();
}

static bool is_expected(const struct checkpoint_manifest *m, const char *name)
{
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) {
        if (strcmp(name, checkpoint_manifest_file_name((enum checkpoint_file)i)) == 0) {
            return checkpoint_manifest_has(m, (enum checkpoint_file)i);
        }
    }
    return strcmp(name, "manifest.json") == 0 || strcmp(name, "run.json") == 0 || strcmp(name, ".") == 0 ||
           strcmp(name, "..") == 0;
}

/* A file that the manifest does not list does no harm, since it is not read, but someone may think it is. */
static void warn_of_unlisted(const struct checkpoint_manifest *m, const char *path)
{
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        if (!is_expected(m, e->d_name)) {
            log_warning("%s/%s is not in the checkpoint's manifest and is not read", path, e->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static struct status open_all(struct checkpoint *c)
{
    char manifest[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(manifest, "%s/manifest.json", c->path));
    TRY(checkpoint_manifest_read(&c->manifest, manifest));
    c->has_manifest = true;
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) {
        if (checkpoint_manifest_has(&c->manifest, (enum checkpoint_file)i)) {
            TRY(open_file(c, (enum checkpoint_file)i));
        }
    }
    warn_of_unlisted(&c->manifest, c->path);
    return status_ok();
}

struct status checkpoint_open(struct checkpoint *c, const char *path)
{
    *c = (struct checkpoint){0};
    TRY(checkpoint_path(c->path, "%s", path));
    struct status s = open_all(c);
    if (failed(s)) {
        checkpoint_close(c);
    }
    return s;
}

static struct status open_model(struct checkpoint *c)
{
    char manifest[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(manifest, "%s/manifest.json", c->path));
    if (file_exists(manifest)) {
        TRY(checkpoint_manifest_read(&c->manifest, manifest));
        c->has_manifest = true;
    }
    TRY(open_file(c, CHECKPOINT_CONFIG));
    TRY(open_file(c, CHECKPOINT_VOCAB));
    TRY(open_file(c, CHECKPOINT_TOKENIZER));
    return open_file(c, CHECKPOINT_MODEL);
}

struct status checkpoint_open_model(struct checkpoint *c, const char *path)
{
    *c = (struct checkpoint){0};
    TRY(checkpoint_path(c->path, "%s", path));
    struct status s = open_model(c);
    if (failed(s)) {
        checkpoint_close(c);
    }
    return s;
}

void checkpoint_close(struct checkpoint *c)
{
    safetensors_close(&c->model);
    safetensors_close(&c->optimizer);
    safetensors_close(&c->fp8);
    json_decref(c->config);
    json_decref(c->tokenizer);
    json_decref(c->state);
    for (int i = 0; i < CHECKPOINT_N_FILES; i++) {
        file_map_close(&c->files[i]);
    }
    *c = (struct checkpoint){0};
}

/* Reads PREFIX + name of every parameter into its place in `flat`. */
static struct status read_flat(const struct checkpoint *c, enum checkpoint_file file, const char *prefix,
                               const struct param_table *params, tensor flat)
{
    const struct safetensors *tensors = file == CHECKPOINT_MODEL ? &c->model : &c->optimizer;
    const char *file_name = checkpoint_manifest_file_name(file);
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        char name[2 * PARAM_NAME_BYTES];
        snprintf(name, sizeof name, "%s%s", prefix, p->name);
        const struct safetensors_entry *e = safetensors_find(tensors, name);
        if (e == NULL) {
            return status_error(STATUS_DATA, "%s/%s has no tensor %s: is it of another model?", c->path,
                                file_name, name);
        }
        TRY(status_context(safetensors_read(e, param_view(p, flat)), "%s/%s", c->path, file_name));
    }
    return file_map_check(&c->files[file], c->path);
}

struct status checkpoint_read_weights(const struct checkpoint *c, const struct param_table *params,
                                      tensor master)
{
    return read_flat(c, CHECKPOINT_MODEL, "", params, master);
}

struct status checkpoint_read_moments(const struct checkpoint *c, const struct param_table *params,
                                      tensor exp_avg, tensor exp_avg_sq)
{
    if (c->optimizer.n != 2 * params->n) {
        return status_error(STATUS_DATA,
                            "%s/optimizer.safetensors has %d tensors, but the model has %d "
                            "parameters with 2 moments each: is it of another model?",
                            c->path, c->optimizer.n, params->n);
    }
    TRY(read_flat(c, CHECKPOINT_OPTIMIZER, "exp_avg.", params, exp_avg));
    return read_flat(c, CHECKPOINT_OPTIMIZER, "exp_avg_sq.", params, exp_avg_sq);
}

struct status checkpoint_read_histories(const struct checkpoint *c, tensor histories)
{
    const char *file_name = checkpoint_manifest_file_name(CHECKPOINT_FP8);
    memset(histories.data, 0, tensor_bytes(histories));
    if (!checkpoint_manifest_has(&c->manifest, CHECKPOINT_FP8)) {
        return status_ok();
    }
    const struct safetensors_entry *e = safetensors_find(&c->fp8, CHECKPOINT_HISTORIES);
    if (e == NULL) {
        return status_error(STATUS_DATA, "%s/%s has no tensor %s", c->path, file_name, CHECKPOINT_HISTORIES);
    }
    TRY(status_context(safetensors_read(e, histories), "%s/%s", c->path, file_name));
    return file_map_check(&c->files[CHECKPOINT_FP8], c->path);
}
