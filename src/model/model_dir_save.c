/* model_dir_save: writes a model directory as `transformers` does: shared tensors once, the bare encoder
 * without the prefix of the others, shards of complete tensors in the order of the parameter table. */
#include "io/dir_lock.h"
#include "io/json_file.h"
#include "text/special_tokens.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_open.h"
#include "model/checkpoint.h"
#include "model/file_tensors.h"
#include "model/model_dir.h"
#include "model/model_dir_forms.h"
#include "model/model_sums.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARD_NAME_BYTES = 64 };

struct saving {
    const struct model_dir_contents *c;
    const char *name;           /* name of the directory */
    struct temporary temporary; /* the directory while it is being filled */
    struct dir_lock lock;       /* lock of the directory's final path */
    struct weight_source weights;
    struct file_tensors tensors;
    struct safetensors_item *items; /* [tensors.n] */
    int *shards;                    /* [tensors.n] shard of each item, from 0 */
    int n_shards;
};

static struct status out_of_memory(const char *what)
{
    return status_error(STATUS_MEMORY, "out of memory for %s", what);
}

/* Writes the document and takes it; a NULL document means that memory ran out. */
static struct status write_json(const struct saving *s, const char *name, json_t *root)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct status status = checkpoint_path(path, "%s/%s", s->temporary.path, name);
    if (failed(status)) {
        json_decref(root);
        return status;
    }
    return json_file_write(path, root);
}

static struct status write_config(const struct saving *s, const char *name, const void *config)
{
    json_t *root = s->c->family->config_to_json(config, s->c->task);
    special_tokens_put_ids(root, s->c->tokenizer);
    return write_json(s, name, root);
}

/* The files of a bare encoder have no prefix. */
static const char *file_name_of(const struct saving *s, const char *name)
{
    const struct model_family *f = s->c->family;
    size_t n = strlen(f->root);
    return s->c->task == f->bare_task && strncmp(name, f->root, n) == 0 ? name + n : name;
}

/* Fills shards in order; a tensor larger than a shard gets its own. */
static struct status plan_shards(struct saving *s)
{
    struct file_tensors *t = &s->tensors;
    uint64_t limit = s->c->max_shard_bytes == 0 ? MODEL_DIR_SHARD_BYTES : s->c->max_shard_bytes, used = 0;
    s->items = calloc((size_t)t->n, sizeof *s->items);
    s->shards = calloc((size_t)t->n, sizeof *s->shards);
    if (s->items == NULL || s->shards == NULL) {
        return out_of_memory("the list of tensors");
    }
    for (int i = 0; i < t->n; i++) {
        tensor values;
        TRY(file_tensors_read(t, i, &s->weights, &values));
        s->items[i] = (struct safetensors_item){file_name_of(s, t->tensors[i].name), t->tensors[i].shape,
                                                .summed = true, .sum = safetensors_sum(values)};
        uint64_t bytes = tensor_bytes(s->items[i].shape);
        if (used > 0 && used + bytes > limit) {
            s->n_shards++;
            used = 0;
        }
        used += bytes;
        s->shards[i] = s->n_shards;
    }
    s->n_shards++;
    return status_ok();
}

static void shard_name(char name[SHARD_NAME_BYTES], const struct saving *s, int shard)
{
    if (s->n_shards == 1) {
        snprintf(name, SHARD_NAME_BYTES, "model.safetensors");
    } else {
        snprintf(name, SHARD_NAME_BYTES, "model-%05d-of-%05d.safetensors", shard + 1, s->n_shards);
    }
}

/* Writes items [first, last) to the shard's file. */
static struct status write_shard(struct saving *s, int shard, int first, int last)
{
    char path[CHECKPOINT_PATH_BYTES], name[SHARD_NAME_BYTES];
    struct safetensors_writer w;
    shard_name(name, s, shard);
    TRY(checkpoint_path(path, "%s/%s", s->temporary.path, name));
    TRY(safetensors_writer_open(&w, path, s->items + first, last - first));
    for (int i = first; i < last && !failed(w.file.status); i++) {
        tensor values;
        struct status read = file_tensors_read(&s->tensors, i, &s->weights, &values);
        if (failed(read)) {
            w.file.status = read;
        } else {
            safetensors_writer_put(&w, values);
        }
    }
    return safetensors_writer_commit(&w);
}

static struct status write_index(const struct saving *s)
{
    json_t *map = json_object();
    uint64_t total = 0;
    bool complete = map != NULL;
    for (int i = 0; i < s->tensors.n; i++) {
        char name[SHARD_NAME_BYTES];
        shard_name(name, s, s->shards[i]);
        complete &= json_object_set_new(map, s->items[i].name, json_string(name)) == 0;
        total += tensor_bytes(s->items[i].shape);
    }
    json_t *root =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    if (!complete) {
        json_decref(root);
        root = NULL;
    }
    return write_json(s, "model.safetensors.index.json", root);
}

static struct status write_weights(struct saving *s)
{
    const struct model_dir_contents *c = s->c;
    TRY(file_tensors_init(&s->tensors, file_tensors_hugging_face(c->family),
                          c->family->sizes(c->config).heads, c->params, c->master.dtype));
    s->weights = weight_source_either(c->weights, &c->master);
    int n = s->tensors.n;
    TRY(plan_shards(s));
    for (int first = 0; first < n;) {
        int last = first + 1;
        while (last < n && s->shards[last] == s->shards[first]) {
            last++;
        }
        TRY(write_shard(s, s->shards[first], first, last));
        first = last;
    }
    return s->n_shards > 1 ? write_index(s) : status_ok();
}

/* The names that a save in Hugging Face's form writes. */
static bool is_of_hugging_face(const char *name)
{
    static const char *const names[] = {"config.json", "model.safetensors", "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    int at = 0;
    return sscanf(name, "model-%*5[0-9]-of-%*5[0-9].safetensors%n", &at) == 0 && at > 0 && name[at] == '\0';
}

static bool is_of_model(const char *name, struct model_dir_form form)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || tokenizer_open_writes(name) ||
        model_sums_is_list(name)) {
        return true;
    }
    return form.kind == MODEL_DIR_HUGGING_FACE ? is_of_hugging_face(name) : model_dir_form_has(form, name);
}

/* Checks that the directory to be replaced holds nothing that a user would miss. */
static struct status check_contents(const char *path, struct model_dir_form form)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return errno == ENOENT
                   ? status_ok()
                   : status_error(STATUS_USAGE, "cannot write a model to %s: %s", path, strerror(errno));
    }
    struct status s = status_ok();
    for (const struct dirent *e; !failed(s) && (e = readdir(dir)) != NULL;) {
        if (!is_of_model(e->d_name, form) && !temporary_is_name(e->d_name)) {
            s = status_error(STATUS_USAGE,
                             "%s holds %.100s, which is not part of %s: a model needs its own directory",
                             path, e->d_name, model_dir_form_name(form));
        }
    }
    closedir(dir);
    return s;
}

/* A process's current directory and the top of a file system are not replaced. */
static struct status check_replaceable(const char *path)
{
    char parent[FILE_PATH_BYTES];
    struct stat here, above, current;
    file_parent(parent, path);
    if (stat(path, &here) != 0) {
        return status_ok();
    }
    bool is_mounted = stat(parent, &above) == 0 && above.st_dev != here.st_dev;
    bool is_current =
        stat(".", &current) == 0 && current.st_dev == here.st_dev && current.st_ino == here.st_ino;
    FAIL_IF(is_mounted || is_current, STATUS_USAGE,
            "%s is %s, but a model replaces its whole directory: choose another one", path,
            is_current ? "the current directory" : "where a file system is mounted");
    return access(parent, W_OK) == 0 ? status_ok()
                                     : status_error(STATUS_IO, "cannot replace %s: cannot write to %s: %s",
                                                    path, parent, strerror(errno));
}

/* The directory that a model for `path` replaces: without slashes at its end, and the target of a link, which
 * stays. */
static struct status find_place(char final[CHECKPOINT_PATH_BYTES], const char *path)
{
    TRY(checkpoint_path(final, "%s", path));
    for (size_t n = strlen(final); n > 1 && final[n - 1] == '/'; n--) {
        final[n - 1] = '\0';
    }
    const char *slash = strrchr(final, '/');
    const char *name = slash == NULL ? final : slash + 1;
    FAIL_IF(*path == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0, STATUS_USAGE,
            "a model needs a directory with its own name, not \"%s\"", path);
    return file_follow_links(final);
}

struct status model_dir_check_place(const char *path, struct model_dir_form form)
{
    char final[CHECKPOINT_PATH_BYTES];
    TRY(find_place(final, path));
    TRY(check_contents(final, form));
    TRY(check_replaceable(final));
    return file_check_directory_path(final, MODEL_DIR_LONGEST_SUFFIX);
}

struct status model_dir_check_output(const char *path, struct model_dir_form form, uint64_t bytes_wanted)
{
    char final[CHECKPOINT_PATH_BYTES];
    TRY(model_dir_check_place(path, form));
    TRY(find_place(final, path));
    return file_check_output_directory(final, MODEL_DIR_LONGEST_SUFFIX, bytes_wanted);
}

static struct status fill_megatron(struct saving *s, const char *path)
{
    void *config;
    TRY(model_dir_padded_config(&config, s->c, megatron_write_rows(s->c)));
    struct status status = write_config(s, "config.json", config);
    free(config);
    return failed(status) ? status : megatron_write(path, s->c);
}

static struct status fill(struct saving *s)
{
    const struct model_dir_contents *c = s->c;
    char path[MODEL_DIR_PATH_BYTES];
    TRY(tokenizer_files_write_all(c->tokenizer, s->temporary.path, c->family->sizes(c->config).max_length));
    TRY(model_dir_written_path(path, s->temporary.path, c->form));
    switch (c->form.kind) {
    case MODEL_DIR_SCRIPT:
    case MODEL_DIR_DEEPSPEED: {
        void *config;
        TRY(model_dir_script_config(&config, c));
        struct status status = write_config(s, c->family->old_config, config);
        free(config);
        return failed(status)                     ? status
               : c->form.kind == MODEL_DIR_SCRIPT ? model_dir_write_script(path, c)
                                                  : model_dir_write_deepspeed(path, c);
    }
    case MODEL_DIR_GGUF:
        TRY(write_config(s, "config.json", c->config));
        return model_gguf_write(path, s->name, c);
    case MODEL_DIR_MEGATRON:
    case MODEL_DIR_UNIVERSAL: return fill_megatron(s, path);
    default: TRY(write_config(s, "config.json", c->config)); return write_weights(s);
    }
}

struct status model_dir_save(const char *path, const struct model_dir_contents *c)
{
    struct saving s = {.c = c};
    char final[CHECKPOINT_PATH_BYTES], parent[FILE_PATH_BYTES];
    TRY(model_dir_check_output(path, c->form,
                               (uint64_t)param_table_count(c->params) * dtype_bytes(c->master.dtype)));
    TRY(find_place(final, path));
    s.name = strrchr(final, '/') != NULL ? strrchr(final, '/') + 1 : final;
    file_parent(parent, final);
    TRY(file_make_directories(parent));
    TRY(dir_lock_acquire_beside(&s.lock, final));
    temporary_clean(final);
    struct status status = temporary_create_directory(&s.temporary, final);
    if (!failed(status)) {
        status = fill(&s);
    }
    if (!failed(status)) {
        status = model_sums_write(s.temporary.path);
    }
    if (!failed(status)) {
        status = temporary_put_directory(&s.temporary, final);
    }
    temporary_remove(&s.temporary);
    dir_lock_release(&s.lock);
    file_tensors_fini(&s.tensors);
    free(s.items);
    free(s.shards);
    return status_context(status, "cannot save the model %s", path);
}

static struct status save_of(const char *path, const struct model_dir *from, struct model_dir_contents c,
                             const struct param_table *params)
{
    struct load_report report;
    struct model_dir_source source;
    TRY(model_dir_source_open(&source, from, params, c.task, &report));
    struct weight_source weights = model_dir_source_of(&source);
    c.params = params;
    c.weights = &weights;
    struct status s = model_dir_save(path, &c), read = model_dir_source_close(&source);
    return failed(s) ? s : read;
}

struct status model_dir_save_of(const char *path, const char *from, const struct model_dir_contents *c)
{
    struct model_dir m;
    struct param_table params = {0};
    TRY(model_dir_open(&m, from));
    struct status s = model_dir_declare(&m, &params, c->task);
    s = failed(s) ? s : save_of(path, &m, *c, &params);
    param_table_fini(&params);
    model_dir_close(&m);
    return s;
}
