#include "model/checkpoint.h"

#include "core/log.h"
#include "text/tokenizer_open.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
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
    FAIL_IF(!json_is_object(*root), STATUS_DATA, "%s: the file must hold one JSON object {...}", path);
    return status_ok();
}

static bool is_tensors(const char *name)
{
    static const char ending[] = ".safetensors";
    size_t n = strlen(name);
    return n >= sizeof ending - 1 && strcmp(name + n - (sizeof ending - 1), ending) == 0;
}

/* Maps, verifies and parses. */
static struct status open_file(struct checkpoint *c, const char *name)
{
    struct checkpoint_file *f = &c->files[c->n_files++];
    snprintf(f->name, sizeof f->name, "%s", name);
    TRY(checkpoint_path(f->path, "%s/%s", c->path, name));
    TRY(file_map_open(&f->map, f->path));
    if (c->has_manifest) {
        TRY(checkpoint_manifest_check(checkpoint_manifest_find(&c->manifest, name), &f->map, f->path));
    }
    if (is_tensors(name)) {
        return safetensors_parse(&f->tensors, f->map.data, f->map.n, f->path);
    }
    json_t **root = strcmp(name, CHECKPOINT_CONFIG) == 0      ? &c->config
                    : strcmp(name, CHECKPOINT_TOKENIZER) == 0 ? &c->tokenizer
                    : strcmp(name, CHECKPOINT_STATE) == 0     ? &c->state
                                                              : NULL;
    return root == NULL ? status_ok() : parse_object(root, &f->map, f->path);
}

/* Room for `n` open files. */
static struct status make_room(struct checkpoint *c, int n)
{
    c->files = calloc((size_t)n, sizeof *c->files);
    return c->files != NULL ? status_ok()
                            : status_error(STATUS_MEMORY, "%s: out of memory for its %d files", c->path, n);
}

/* Fills a set of tensors with those open files that belong to it. */
static struct status open_set(struct checkpoint *c, struct tensor_set *set, const char *name)
{
    struct tensor_set_file *files = calloc((size_t)c->n_files, sizeof *files);
    int n = 0, part, n_parts;
    FAIL_IF(files == NULL, STATUS_MEMORY, "%s: out of memory for its tensors", c->path);
    for (int i = 0; i < c->n_files; i++) {
        if (checkpoint_manifest_is_of_set(c->files[i].name, name, &part, &n_parts)) {
            files[n++] = (struct tensor_set_file){&c->files[i].tensors, c->files[i].path};
        }
    }
    struct status s = tensor_set_init(set, files, n);
    free(files);
    return s;
}

static bool is_expected(const struct checkpoint_manifest *m, const char *name)
{
    return checkpoint_manifest_find(m, name) != NULL || strcmp(name, "manifest.json") == 0 ||
           strcmp(name, "run.json") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A file that the manifest does not list is not read, so it does no harm; but a user may think that it is
 * read. */
static void warn_of_unlisted(const struct checkpoint_manifest *m, const char *path)
{
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        if (!is_expected(m, e->d_name)) {
            log_warning("%s/%s is not in the checkpoint's manifest, so kiln does not read it", path,
                        e->d_name);
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
    TRY(make_room(c, c->manifest.n));
    for (int i = 0; i < c->manifest.n; i++) {
        TRY(open_file(c, c->manifest.files[i].name));
    }
    TRY(open_set(c, &c->model, CHECKPOINT_MODEL));
    TRY(open_set(c, &c->optimizer, CHECKPOINT_OPTIMIZER));
    warn_of_unlisted(&c->manifest, c->path);
    return status_ok();
}

/* Whether a listed file belongs to the model; the others belong to training. */
static bool is_of_model(const char *name)
{
    int part, n_parts;
    return strcmp(name, CHECKPOINT_CONFIG) == 0 || tokenizer_open_writes(name) ||
           checkpoint_manifest_is_of_set(name, CHECKPOINT_MODEL, &part, &n_parts);
}

static struct status open_model(struct checkpoint *c)
{
    static const char *const names[] = {CHECKPOINT_CONFIG, "vocab.txt", CHECKPOINT_TOKENIZER,
                                        CHECKPOINT_MODEL ".safetensors"};
    enum { N_NAMES = sizeof names / sizeof names[0] };
    char manifest[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(manifest, "%s/manifest.json", c->path));
    if (file_exists(manifest)) {
        TRY(checkpoint_manifest_read(&c->manifest, manifest));
        c->has_manifest = true;
    }
    TRY(make_room(c, N_NAMES + c->manifest.n));
    for (int i = 0; i < N_NAMES && !c->has_manifest; i++) {
        TRY(open_file(c, names[i]));
    }
    for (int i = 0; i < c->manifest.n; i++) {
        if (is_of_model(c->manifest.files[i].name)) {
            TRY(open_file(c, c->manifest.files[i].name));
        }
    }
    return open_set(c, &c->model, CHECKPOINT_MODEL);
}

static struct status open_with(struct checkpoint *c, const char *path,
                               struct status (*open)(struct checkpoint *c))
{
    *c = (struct checkpoint){0};
    TRY(checkpoint_path(c->path, "%s", path));
    struct status s = open(c);
    if (failed(s)) {
        checkpoint_close(c);
    }
    return s;
}

struct status checkpoint_open(struct checkpoint *c, const char *path)
{
    return open_with(c, path, open_all);
}

struct status checkpoint_open_model(struct checkpoint *c, const char *path)
{
    return open_with(c, path, open_model);
}

void checkpoint_close(struct checkpoint *c)
{
    tensor_set_fini(&c->model);
    tensor_set_fini(&c->optimizer);
    json_decref(c->config);
    json_decref(c->tokenizer);
    json_decref(c->state);
    for (int i = 0; i < c->n_files; i++) {
        safetensors_close(&c->files[i].tensors);
        file_map_close(&c->files[i].map);
    }
    free(c->files);
    checkpoint_manifest_fini(&c->manifest);
    *c = (struct checkpoint){0};
}

const struct checkpoint_file *checkpoint_find(const struct checkpoint *c, const char *name)
{
    for (int i = 0; i < c->n_files; i++) {
        if (strcmp(c->files[i].name, name) == 0) {
            return &c->files[i];
        }
    }
    return NULL;
}

struct status checkpoint_check_files(const struct checkpoint *c)
{
    for (int i = 0; i < c->n_files; i++) {
        TRY(file_map_check(&c->files[i].map, c->files[i].path));
    }
    return status_ok();
}

void checkpoint_overlap(const struct param *p, int64_t begin, int64_t n, int64_t *from, int64_t *to)
{
    int64_t count = param_count(p), first = begin - p->offset, end = begin + n - p->offset;
    *from = first < 0 ? 0 : first > count ? count : first;
    *to = end < *from ? *from : end > count ? count : end;
}

struct tensor_slice checkpoint_slice(const struct param *p, int64_t from, int64_t to)
{
    /* `before`: elements in the rows above */
    int64_t cols = p->n_dims == 2 ? p->dims[1] : 1, before = p->first[0] * cols;
    return (struct tensor_slice){.n_dims = p->n_dims,
                                 .dims = {p->full[0], p->full[1]},
                                 .part = {.at = {0, p->n_dims == 2 ? p->first[1] : 0},
                                          .n = {p->full[0], cols},
                                          .begin = before + from,
                                          .end = before + to}};
}

struct status checkpoint_check_moments(const struct checkpoint *c, const struct param_table *params)
{
    return !param_part_is_all(&params->part) || c->optimizer.n == 2 * params->n
               ? status_ok()
               : status_error(
                     STATUS_DATA,
                     "%s/optimizer.safetensors has %d tensors, but the model has %d parameters with 2 "
                     "moments each: is it from another model?",
                     c->path, c->optimizer.n, params->n);
}

struct status checkpoint_read(const struct checkpoint *c, enum param_kept kept, const struct param *p,
                              int64_t from, tensor values)
{
    static const char *const prefixes[PARAM_N_KEPT] = {"", "exp_avg.", "exp_avg_sq."};
    const struct tensor_set *set = kept == PARAM_WEIGHT ? &c->model : &c->optimizer;
    struct tensor_slice wanted = checkpoint_slice(p, from, from + tensor_count(values));
    char name[2 * PARAM_NAME_BYTES];
    snprintf(name, sizeof name, "%s%s", prefixes[kept], p->name);
    const struct stored_tensor *t = tensor_set_find(set, name);
    return t != NULL
               ? tensor_set_read(set, t, &wanted, values)
               : status_error(STATUS_DATA, "%s/%s.safetensors has no tensor %s: is it from another model?",
                              c->path, kept == PARAM_WEIGHT ? CHECKPOINT_MODEL : CHECKPOINT_OPTIMIZER, name);
}

struct status checkpoint_read_extra(const struct checkpoint *c, const char *file, const char *name,
                                    tensor out)
{
    const struct checkpoint_file *f = checkpoint_find(c, file);
    memset(out.data, 0, tensor_bytes(out));
    if (f == NULL) {
        return status_ok();
    }
    const struct stored_tensor *e = safetensors_find(&f->tensors, name);
    FAIL_IF(e == NULL, STATUS_DATA, "%s has no tensor %s", f->path, name);
    TRY(status_context(stored_tensor_read(e, out), "%s", f->path));
    return file_map_check(&f->map, f->path);
}
