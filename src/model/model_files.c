#include "model/model_files.h"

#include "core/log.h"
#include "model/checkpoint.h"

#include <stdlib.h>
#include <string.h>

static struct status out_of_memory(const char *directory)
{
    return status_error(STATUS_MEMORY, "out of memory for the list of tensors of %s", directory);
}

/* A shard lies in the directory itself: an index must not lead anywhere else. */
static struct status check_file_name(const char *index, const json_t *value)
{
    static const char ending[] = ".safetensors";
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    size_t n = strlen(name);
    if (n < sizeof ending || strcmp(name + n - (sizeof ending - 1), ending) != 0 ||
        strchr(name, '/') != NULL || name[0] == '.') {
        return status_error(
            STATUS_DATA,
            "%s: \"weight_map\" must map tensors to names of .safetensors files beside it, but has "
            "'%.60s'",
            index, name);
    }
    return status_ok();
}

static struct status open_file(struct model_files *m, const char *directory, const char *name)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/%s", directory, name));
    struct safetensors *files = realloc(m->files, (size_t)(m->n_files + 1) * sizeof *files);
    if (files == NULL) {
        return out_of_memory(directory);
    }
    m->files = files;
    TRY(safetensors_open(&m->files[m->n_files], path));
    m->n_files++;
    return status_ok();
}

/* Takes the tensors of a shard from the map of those that are still to be found. */
static struct status strike_out(json_t *left, const struct safetensors *f, const char *name,
                                const char *index)
{
    for (int i = 0; i < f->n; i++) {
        const char *tensor_name = f->entries[i].name;
        const char *place = json_string_value(json_object_get(left, tensor_name));
        if (place == NULL || strcmp(place, name) != 0) {
            return status_error(STATUS_DATA, "%s: its tensor %.80s is put %s%.60s by %s", name, tensor_name,
                                place == NULL ? "into no file or another one" : "into ",
                                place == NULL ? "" : place, index);
        }
        json_object_del(left, tensor_name);
    }
    return status_ok();
}

/* The next tensor that is still to be found tells the next shard to open. */
static struct status open_shards(struct model_files *m, const char *directory, json_t *left,
                                 const char *index)
{
    while (json_object_size(left) > 0) {
        void *first = json_object_iter(left);
        const char *tensor_name = json_object_iter_key(first);
        const json_t *value = json_object_iter_value(first);
        TRY(check_file_name(index, value));
        char name[CHECKPOINT_PATH_BYTES];
        TRY(checkpoint_path(name, "%s", json_string_value(value)));
        size_t before = json_object_size(left);
        TRY(status_context(open_file(m, directory, name), "%s", index));
        const struct safetensors *f = &m->files[m->n_files - 1];
        if (safetensors_find(f, tensor_name) == NULL) {
            return status_error(STATUS_DATA, "%s puts the tensor %.80s into %.60s, which does not hold it",
                                index, tensor_name, name);
        }
        TRY(strike_out(left, f, name, index));
        CHECK(json_object_size(left) < before, "no tensor of %s was found", name);
    }
    return status_ok();
}

/* Nothing is read by the index's total, and it is often wrong in files made by hand: a warning is enough. */
static void compare_total(const struct model_files *m, const json_t *root, const char *index)
{
    const json_t *total = json_object_get(json_object_get(root, "metadata"), "total_size");
    double bytes = 0;
    for (int i = 0; i < m->n_files; i++) {
        for (int k = 0; k < m->files[i].n; k++) {
            bytes += (double)m->files[i].entries[k].bytes;
        }
    }
    if (json_is_number(total) && json_number_value(total) != bytes) {
        log_warning("%s: \"total_size\" is %.0f, but its tensors have %.0f bytes", index,
                    json_number_value(total), bytes);
    }
}

static struct status open_indexed(struct model_files *m, const char *directory, const char *index)
{
    json_t *root;
    TRY(json_read_object(&root, index));
    json_t *map = json_object_get(root, "weight_map");
    json_t *left = json_copy(map);
    struct status s = status_ok();
    if (!json_is_object(map) || json_object_size(map) == 0) {
        s = status_error(STATUS_DATA, "%s: \"weight_map\" must be an object from tensors to files", index);
    } else if (left == NULL) {
        s = out_of_memory(directory);
    } else {
        s = open_shards(m, directory, left, index);
    }
    if (!failed(s)) {
        compare_total(m, root, index);
    }
    json_decref(left);
    json_decref(root);
    return s;
}

/* Puts a tensor together from its slices, in memory of its own. */
static struct status join(struct safetensors_entry *e, const struct tensor_set *set,
                          const struct tensor_piece *first)
{
    *e = *first->entry;
    e->n_dims = first->slice.n_dims;
    memcpy(e->dims, first->slice.dims, sizeof e->dims);
    tensor shape = {.dtype = e->dtype, .n_dims = e->n_dims};
    memcpy(shape.dims, e->dims, sizeof shape.dims);
    e->bytes = tensor_bytes(shape);
    void *data = malloc(e->bytes + 1);
    e->data = data;
    return data == NULL
               ? status_error(STATUS_MEMORY, "out of memory for the tensor %s", e->name)
               : tensor_set_read(set, first, shape, 0, tensor_1d(data, e->dtype, tensor_count(shape)));
}

static struct status join_all(struct model_files *m, const struct tensor_set *set, const char *directory)
{
    m->joined = calloc((size_t)set->n + 1, sizeof *m->joined);
    if (m->joined == NULL) {
        return out_of_memory(directory);
    }
    for (int i = 0; i < set->n_pieces; i++) {
        if (i == 0 || strcmp(set->pieces[i - 1].entry->name, set->pieces[i].entry->name) != 0) {
            TRY(join(&m->joined[m->n_joined++], set, &set->pieces[i]));
        }
    }
    return status_ok();
}

/* The files of weights that a checkpoint's manifest lists. */
static struct status open_parts(struct model_files *m, const char *directory,
                                const struct checkpoint_manifest *manifest)
{
    struct tensor_set_file *files = calloc((size_t)manifest->n, sizeof *files);
    struct tensor_set set = {0};
    struct status s = files == NULL ? out_of_memory(directory) : status_ok();
    int part, n_parts;
    for (int i = 0; i < manifest->n && !failed(s); i++) {
        if (checkpoint_manifest_is_of_set(manifest->files[i].name, CHECKPOINT_MODEL, &part, &n_parts)) {
            files[m->n_files].source = manifest->files[i].name;
            s = open_file(m, directory, manifest->files[i].name);
        }
    }
    for (int i = 0; i < m->n_files && !failed(s); i++) {
        files[i].file = &m->files[i]; /* which opening the next one may have moved */
    }
    if (!failed(s)) {
        s = tensor_set_init(&set, files, m->n_files);
    }
    if (!failed(s)) {
        s = join_all(m, &set, directory);
    }
    tensor_set_fini(&set);
    free(files);
    return s;
}

static int compare(const void *a, const void *b)
{
    const struct model_tensor *x = a;
    const struct model_tensor *y = b;
    return x->as.tied != y->as.tied ? x->as.tied - y->as.tied : strcmp(x->as.name, y->as.name);
}

static void add_tensor(struct model_files *m, const struct safetensors_entry *e)
{
    m->tensors[m->n_tensors++] = (struct model_tensor){names_hf_canonical(m->family, e->name), e};
}

static struct status list_tensors(struct model_files *m, const char *directory)
{
    size_t n = (size_t)m->n_joined;
    for (int i = 0; i < m->n_files && m->joined == NULL; i++) {
        n += (size_t)m->files[i].n;
    }
    m->tensors = calloc(n + 1, sizeof *m->tensors);
    if (m->tensors == NULL) {
        return out_of_memory(directory);
    }
    for (int i = 0; m->joined != NULL && i < m->n_joined; i++) {
        add_tensor(m, &m->joined[i]);
    }
    for (int i = 0; i < m->n_files && m->joined == NULL; i++) {
        for (int k = 0; k < m->files[i].n; k++) {
            add_tensor(m, &m->files[i].entries[k]);
        }
    }
    qsort(m->tensors, n, sizeof *m->tensors, compare);
    for (int i = 1; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        if (t->as.part != NAMES_OTHER && compare(t - 1, t) == 0) {
            return status_error(STATUS_DATA, "%s: the tensors %.80s and %.80s both stand for %s", directory,
                                t[-1].entry->name, t->entry->name, t->as.name);
        }
    }
    return status_ok();
}

static struct status open_files(struct model_files *m, const char *directory)
{
    char whole[CHECKPOINT_PATH_BYTES], index[CHECKPOINT_PATH_BYTES], manifest[CHECKPOINT_PATH_BYTES];
    struct checkpoint_manifest listed = {0};
    TRY(checkpoint_path(whole, "%s/model.safetensors", directory));
    TRY(checkpoint_path(index, "%s/model.safetensors.index.json", directory));
    TRY(checkpoint_path(manifest, "%s/manifest.json", directory));
    if (file_exists(whole)) {
        TRY(open_file(m, directory, "model.safetensors"));
    } else if (file_exists(index)) {
        TRY(open_indexed(m, directory, index));
    } else if (file_exists(manifest)) {
        TRY(checkpoint_manifest_read(&listed, manifest));
        struct status s = open_parts(m, directory, &listed);
        checkpoint_manifest_fini(&listed);
        TRY(s);
    } else {
        return status_error(
            STATUS_DATA,
            "%s has neither model.safetensors nor model.safetensors.index.json; weights in other "
            "formats (pytorch_model.bin) must be saved as safetensors first",
            directory);
    }
    return list_tensors(m, directory);
}

struct status model_files_open(struct model_files *m, const char *directory,
                               const struct model_family *family)
{
    *m = (struct model_files){.family = family};
    struct status s = open_files(m, directory);
    if (failed(s)) {
        model_files_close(m);
    }
    return s;
}

void model_files_close(struct model_files *m)
{
    for (int i = 0; i < m->n_files; i++) {
        safetensors_close(&m->files[i]);
    }
    for (int i = 0; i < m->n_joined; i++) {
        free((void *)m->joined[i].data);
    }
    free(m->joined);
    free(m->files);
    free(m->tensors);
    *m = (struct model_files){0};
}

const struct model_tensor *model_files_find(const struct model_files *m, const char *name, bool tied)
{
    struct model_tensor key = {.as = {.tied = tied}};
    CHECK(strlen(name) < sizeof key.as.name, "the name %s is too long", name);
    memcpy(key.as.name, name, strlen(name) + 1);
    return bsearch(&key, m->tensors, (size_t)m->n_tensors, sizeof key, compare);
}
