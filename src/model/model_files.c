#include "model/model_files.h"

#include "core/log.h"
#include "io/stored_rects.h"
#include "model/model_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct status out_of_memory(const char *directory)
{
    return status_error(STATUS_MEMORY, "out of memory for the list of tensors of %s", directory);
}

/* A shard is in the directory itself: an index must not point anywhere else.  Its ending is the one in the
 * index's name, STEM.ENDING.index.json. */
static struct status check_file_name(const char *index, const json_t *value)
{
    const char *wanted = strstr(index, ".safetensors.index.json") != NULL ? ".safetensors" : ".bin";
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    const char *ending = strrchr(name, '.');
    FAIL_IF(ending == NULL || ending == name || strcmp(ending, wanted) != 0 || strchr(name, '/') != NULL ||
                name[0] == '.',
            STATUS_DATA,
            "%s: \"weight_map\" must map tensors to names of %s files beside it, but has '%.60s'", index,
            wanted, name);
    return status_ok();
}

static struct status open_path(struct model_files *m, const char *path)
{
    struct tensor_file *files = realloc(m->files, (size_t)(m->n_files + 1) * sizeof *files);
    if (files == NULL) {
        return out_of_memory(path);
    }
    m->files = files;
    TRY(tensor_file_open(&m->files[m->n_files], path));
    const struct tensor_file *f = &m->files[m->n_files++];
    m->n_heads = f->format == TENSOR_FILE_GGUF ? (int64_t)f->gguf.n_heads : m->n_heads;
    m->norm_eps = f->format == TENSOR_FILE_GGUF ? (double)f->gguf.norm_eps : m->norm_eps;
    return status_ok();
}

static struct status open_file(struct model_files *m, const char *directory, const char *name)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/%s", directory, name));
    return open_path(m, path);
}

/* Removes the tensors of a shard from the map of those that were not found yet. */
static struct status strike_out(json_t *left, const struct tensor_file *f, const char *name,
                                const char *index)
{
    for (int i = 0; i < f->n; i++) {
        const char *tensor_name = f->tensors[i].name;
        const char *place = json_string_value(json_object_get(left, tensor_name));
        FAIL_IF(place == NULL || strcmp(place, name) != 0, STATUS_DATA,
                "%s says that the tensor %.80s of %s is in %.60s", index, tensor_name, name,
                place == NULL ? "no file or another file" : place);
        json_object_del(left, tensor_name);
    }
    return status_ok();
}

/* Opens the shard of any tensor that was not found yet, until all are. */
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
        const struct tensor_file *f = &m->files[m->n_files - 1];
        FAIL_IF(stored_tensor_find(f->tensors, f->n, tensor_name) == NULL, STATUS_DATA,
                "%s says that the tensor %.80s is in %.60s, which does not hold it", index, tensor_name,
                name);
        TRY(strike_out(left, f, name, index));
        CHECK(json_object_size(left) < before, "no tensor of %s was found", name);
    }
    return status_ok();
}

/* Nothing depends on the index's total, and in files made by hand it is often wrong: a warning is enough. */
static void compare_total(const struct model_files *m, const json_t *root, const char *index)
{
    const json_t *total = json_object_get(json_object_get(root, "metadata"), "total_size");
    double bytes = 0;
    for (int i = 0; i < m->n_files; i++) {
        for (int k = 0; k < m->files[i].n; k++) {
            bytes += (double)m->files[i].tensors[k].bytes;
        }
    }
    if (json_is_number(total) && json_number_value(total) != bytes) {
        log_warning("%s: \"total_size\" is %.0f, but its tensors have %.0f bytes", index,
                    json_number_value(total), bytes);
    }
}

static struct status open_indexed(struct model_files *m, const char *directory, const char *name)
{
    char index[CHECKPOINT_PATH_BYTES];
    json_t *root;
    TRY(checkpoint_path(index, "%s/%s", directory, name));
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

/* Opens the slices that a checkpoint's manifest lists. */
static struct status open_slices(struct model_files *m, const char *directory, struct tensor_set_file *files)
{
    int part, n_parts, n = 0;
    for (int i = 0; i < m->manifest.n; i++) {
        const char *name = m->manifest.files[i].name;
        if (checkpoint_manifest_is_of_set(name, CHECKPOINT_MODEL, &part, &n_parts)) {
            TRY(open_file(m, directory, name));
            FAIL_IF(m->files[n].format != TENSOR_FILE_SAFETENSORS, STATUS_DATA,
                    "%s/%s is not a safetensors file", directory, name);
            files[n++].source = name;
        }
    }
    for (int i = 0; i < n; i++) { /* the files do not move any more: all are open */
        files[i].file = &m->files[i].safetensors;
    }
    return tensor_set_init(&m->joined, files, n);
}

static struct status open_listed(struct model_files *m, const char *directory, const char *name)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(path, "%s/%s", directory, name));
    TRY(checkpoint_manifest_read(&m->manifest, path));
    struct tensor_set_file *files = calloc((size_t)m->manifest.n + 1, sizeof *files);
    struct status s = files == NULL ? out_of_memory(directory) : open_slices(m, directory, files);
    free(files);
    return s;
}

static int compare(const void *a, const void *b)
{
    const struct model_tensor *x = a;
    const struct model_tensor *y = b;
    return x->as.tied != y->as.tied ? x->as.tied - y->as.tied : strcmp(x->as.name, y->as.name);
}

/* The join whose complete tensor a name is, or NULL; *end is where the name's end begins. */
static const struct model_family_join *join_of(const struct model_family *f, const char *name, size_t *end)
{
    for (const struct model_family_join *j = f->joins; j != NULL && j->whole != NULL; j++) {
        size_t n = strlen(name), n_whole = strlen(j->whole);
        if (n >= n_whole && strcmp(name + n - n_whole, j->whole) == 0) {
            *end = n - n_whole;
            return j;
        }
    }
    return NULL;
}

struct model_tensor model_tensor_like(const struct model_tensor *t, const struct stored_tensor *other)
{
    struct model_tensor like = *t;
    bool turned = other->n_dims == 2 && (t->join == NULL ? t->as.order.transposed : t->join->transposed);
    like.stored = turned ? stored_tensor_transpose(other) : *other;
    return like;
}

static void add_as(struct model_files *m, const struct stored_tensor *t, const struct names_hf *as,
                   const struct model_family_join *join, int part)
{
    const struct model_tensor plain = {.as = *as, .join = join, .part = part};
    m->tensors[m->n_tensors++] = model_tensor_like(&plain, t);
}

static void add_tensor(struct model_files *m, const struct stored_tensor *t, const char *name)
{
    struct names_hf as = names_hf_canonical(m->family, name);
    size_t end;
    const struct model_family_join *join = join_of(m->family, as.name, &end);
    for (int part = 0; join != NULL && part < model_family_join_parts(join); part++) {
        snprintf(as.name + end, sizeof as.name - end, "%s", join->parts[part]);
        add_as(m, t, &as, join, part);
    }
    if (join == NULL) {
        add_as(m, t, &as, NULL, 0);
    }
}

/* The rows of each head as kiln has them: the first half, then the second. */
static struct status unpair(struct stored_tensor *view, void **list, const struct stored_tensor *whole,
                            struct model_heads heads)
{
    int64_t d = heads.size, cols = whole->n_dims == 2 ? whole->dims[1] : 1;
    FAIL_IF(whole->n_dims < 1 || whole->n_dims > 2 || d < 2 || d % 2 != 0 || whole->dims[0] % d != 0,
            STATUS_DATA, "%.80s has no rows of heads of %lld", whole->name, (long long)d);
    struct stored_rects rects = {0};
    for (int64_t r = 0; r < whole->dims[0]; r++) {
        int64_t of_head = r % d, from = r - of_head + of_head % (d / 2) * 2 + of_head / (d / 2);
        stored_rects_add(&rects, (int64_t[2]){r, 0}, whole, (int64_t[2]){from, 0}, (int64_t[2]){1, cols});
    }
    return stored_rects_take(&rects, view, list);
}

struct status model_tensor_view(struct stored_tensor *view, void **list, const struct model_tensor *t,
                                struct model_heads heads)
{
    const struct stored_tensor *whole = &t->stored;
    *view = *whole;
    *list = NULL;
    if (t->join == NULL) {
        return t->as.order.pairs_halves ? unpair(view, list, whole, heads) : status_ok();
    }
    int64_t blocks = t->join->by_head ? heads.n : 1, cols = whole->n_dims == 2 ? whole->dims[1] : 1;
    struct model_family_share share = model_family_join_share(t->join, t->part, heads);
    FAIL_IF(whole->n_dims < 1 || whole->n_dims > 2 || heads.n < 1 ||
                whole->dims[0] % (share.all * blocks) != 0,
            STATUS_DATA, "%.80s has no rows of %d parts", whole->name, model_family_join_parts(t->join));
    struct stored_rects rects = {0};
    int64_t size = whole->dims[0] / (share.all * blocks), rows = share.own * size;
    for (int64_t b = 0; b < blocks; b++) {
        stored_rects_add(&rects, (int64_t[2]){b * rows, 0}, whole,
                         (int64_t[2]){(b * share.all + share.before) * size, 0}, (int64_t[2]){rows, cols});
    }
    view->dims[0] = blocks * rows;
    return stored_rects_take(&rects, view, list);
}

static bool is_below(const struct stored_tensor *t, const char *root)
{
    return strncmp(t->name, root, strlen(root)) == 0;
}

/* The prefix of the model's tensors in what a script saved: "model." in those of NVIDIA and Habana, "module."
 * in DeepSpeed; "": there is only the model. */
static const char *root_of(const struct tensor_file *f)
{
    static const char *const roots[] = {"model.", "module."};
    for (size_t r = 0; r < sizeof roots / sizeof roots[0]; r++) {
        for (int i = 0; i < f->n && f->format == TENSOR_FILE_TORCH; i++) {
            if (is_below(&f->tensors[i], roots[r])) {
                return roots[r];
            }
        }
    }
    return "";
}

static void add_tensors(struct model_files *m, const struct stored_tensor *tensors, int n)
{
    for (int i = 0; i < n; i++) {
        add_tensor(m, &tensors[i], tensors[i].name);
    }
}

/* Whether the ranks have the weights that a tensor of the states stands for, tied ones too. */
static bool is_superseded(const struct model_files *m, const char *name)
{
    struct model_tensor key = {.as = names_hf_canonical(m->family, name)};
    key.as.tied = false;
    return m->zero != NULL && bsearch(&key, m->tensors, (size_t)m->n_zero, sizeof key, compare) != NULL;
}

static void add_file(struct model_files *m, const struct tensor_file *f)
{
    const char *root = root_of(f);
    for (int i = 0; i < f->n; i++) {
        const char *name = f->tensors[i].name + strlen(root);
        if (is_below(&f->tensors[i], root) && !is_superseded(m, name)) {
            add_tensor(m, &f->tensors[i], name);
        } else if (!is_below(&f->tensors[i], root)) {
            m->n_beside++;
        }
    }
}

/* The weights of DeepSpeed's ranks come first, and in the order of names until the rest is there. */
static void add_all(struct model_files *m)
{
    if (m->zero != NULL) {
        add_tensors(m, m->zero->tensors[PARAM_WEIGHT], m->zero->n);
        qsort(m->tensors, (size_t)m->n_tensors, sizeof *m->tensors, compare);
    }
    m->n_zero = m->n_tensors;
    add_tensors(m, m->joined.tensors, m->joined.n);
    if (m->megatron != NULL) {
        add_tensors(m, m->megatron->tensors[PARAM_WEIGHT], m->megatron->n);
    }
    for (int i = 0; i < m->n_files && m->joined.tensors == NULL; i++) {
        add_file(m, &m->files[i]);
    }
}

static struct status list_tensors(struct model_files *m, const char *directory)
{
    size_t n = (size_t)m->joined.n + (size_t)(m->zero == NULL ? 0 : m->zero->n) +
               (size_t)(m->megatron == NULL ? 0 : m->megatron->n);
    for (int i = 0; i < m->n_files; i++) {
        n += (size_t)m->files[i].n;
    }
    m->tensors = calloc(MODEL_JOIN_MOST_PARTS * n + 1, sizeof *m->tensors);
    if (m->tensors == NULL) {
        return out_of_memory(directory);
    }
    add_all(m);
    qsort(m->tensors, (size_t)m->n_tensors, sizeof *m->tensors, compare);
    for (int i = 1; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        bool is_read = t->as.part != NAMES_OTHER && t->as.part != NAMES_STATE;
        FAIL_IF(is_read && compare(t - 1, t) == 0, STATUS_DATA,
                "%s: the tensors %.80s and %.80s both stand for %s", directory, t[-1].stored.name,
                t->stored.name, t->as.name);
    }
    return status_ok();
}

/* Megatron-DeepSpeed's: a universal checkpoint, the states of optimizers, which have the weights in fp32, or
 * else the files of layers. */
static struct status open_megatron(struct model_files *m, const char *directory, const char *name)
{
    m->megatron = calloc(1, sizeof *m->megatron);
    if (m->megatron == NULL) {
        return out_of_memory(directory);
    }
    TRY(strcmp(name, MEGATRON_UNIVERSAL) == 0
            ? megatron_files_open_universal(m->megatron, directory, m->n_layers)
        : megatron_files_has_states(directory)
            ? megatron_files_open_states(m->megatron, directory, m->n_layers)
            : megatron_files_open_layers(m->megatron, directory, m->n_layers));
    m->n_heads = megatron_files_argument(m->megatron->states, "num_attention_heads");
    m->norm_eps = megatron_files_real(m->megatron->states, "layernorm_epsilon");
    return status_ok();
}

/* DeepSpeed's states: the weights of the ranks next to them are those that the optimizer updates. */
static struct status open_states(struct model_files *m, const char *directory, const char *name)
{
    if (megatron_files_has_states(directory)) {
        return open_megatron(m, directory, name);
    }
    TRY(open_file(m, directory, name));
    if (!zero_folder_is_one(directory) || m->files[0].format != TENSOR_FILE_TORCH) {
        return status_ok();
    }
    m->zero = calloc(1, sizeof *m->zero);
    if (m->zero == NULL) {
        return out_of_memory(directory);
    }
    TRY(zero_folder_open(m->zero, directory, m->files[0].torch.root));
    TRY(zero_folder_compare(m->zero, directory, m->files[0].torch.root));
    log_info("%s: reading the fp32 weights of %d ranks", directory, m->zero->n_ranks);
    return status_ok();
}

/* The files of weights that a directory may have; the first one found is read. */
static const struct form {
    const char *name;
    struct status (*open)(struct model_files *m, const char *directory, const char *name);
    bool is_foreign; /* the log says if it is there but not read */
} forms[] = {
    {"model.safetensors", open_file, false},
    {"model.safetensors.index.json", open_indexed, false},
    {"manifest.json", open_listed, false},
    {"pytorch_model.bin", open_file, true},
    {"pytorch_model.bin.index.json", open_indexed, true},
    {MEGATRON_UNIVERSAL, open_megatron, true},
    {MEGATRON_FIRST_FILE, open_megatron, true},
    {ZERO_FOLDER_STATES, open_states, true},
    {"model.gguf", open_file, true},
};

/* Files that directories have instead of weights, and what to do. */
static const struct other_weights {
    const char *name, *is, *advice;
} other_weights[] = {
    {"adapter_model.safetensors", "an adapter (PEFT)",
     "merge it into its base model first (merge_and_unload)"},
    {"adapter_model.bin", "an adapter (PEFT)", "merge it into its base model first (merge_and_unload)"},
    {"tf_model.h5", "weights of TensorFlow in HDF5",
     "load them by transformers with from_tf=True, and save_pretrained"},
    {"flax_model.msgpack", "weights of Flax",
     "load them by transformers with from_flax=True, and save_pretrained"},
    {"model.bin", "a model of llm.c", "make a Hugging Face directory of it by llm.c's dev/eval/export_hf.py"},
    {"model.onnx", "a graph of ONNX", "export the model as safetensors"},
};

struct status model_files_name_other(const char *directory)
{
    for (size_t i = 0; i < sizeof other_weights / sizeof other_weights[0]; i++) {
        const struct other_weights *w = &other_weights[i];
        char path[CHECKPOINT_PATH_BYTES];
        TRY(checkpoint_path(path, "%s/%s", directory, w->name));
        FAIL_IF(file_exists(path), STATUS_DATA, "%s is %s, which kiln does not read: %s", path, w->is,
                w->advice);
    }
    return status_ok();
}

static struct status open_prefix(struct model_files *m, const char *directory)
{
    char index[CHECKPOINT_PATH_BYTES];
    const char *prefix = m->family->old_prefix;
    if (prefix != NULL) {
        TRY(checkpoint_path(index, "%s/%s.index", directory, prefix));
        if (file_exists(index)) {
            return open_file(m, directory, prefix);
        }
    }
    TRY(model_files_name_other(directory));
    return status_error(STATUS_DATA,
                        "%s has no model.safetensors, pytorch_model.bin, index of their shards or other "
                        "weights that kiln knows by name",
                        directory);
}

static struct status open_directory(struct model_files *m, const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    const struct form *taken = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (!model_place_has(path, directory, forms[i].name)) {
            continue;
        }
        if (taken == NULL) {
            taken = &forms[i];
        } else if (forms[i].is_foreign) {
            log_info("%s has both %s and %s; kiln reads the first", directory, taken->name, forms[i].name);
        }
    }
    return taken != NULL ? taken->open(m, directory, taken->name) : open_prefix(m, directory);
}

static struct status open_named(struct model_files *m, const char *path)
{
    char directory[CHECKPOINT_PATH_BYTES];
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    file_parent(directory, path);
    return strcmp(name, ZERO_FOLDER_STATES) == 0 ? open_states(m, directory, name)
           : strcmp(name, MEGATRON_FIRST_FILE) == 0 || strcmp(name, MEGATRON_UNIVERSAL) == 0
               ? open_megatron(m, directory, name)
               : open_path(m, path);
}

struct status model_files_open(struct model_files *m, const struct model_place *place,
                               const struct model_family *family, int64_t n_layers)
{
    *m = (struct model_files){.family = family, .n_layers = n_layers};
    bool is_file = place->tensors[0] != '\0';
    struct status s = is_file ? open_named(m, place->tensors) : open_directory(m, place->directory);
    if (!failed(s)) {
        s = list_tensors(m, is_file ? place->tensors : place->directory);
    }
    if (failed(s)) {
        model_files_close(m);
    }
    return s;
}

void model_files_close(struct model_files *m)
{
    for (int i = 0; i < m->n_files; i++) {
        tensor_file_close(&m->files[i]);
    }
    if (m->zero != NULL) {
        zero_folder_close(m->zero);
    }
    if (m->megatron != NULL) {
        megatron_files_close(m->megatron);
    }
    tensor_set_fini(&m->joined);
    checkpoint_manifest_fini(&m->manifest);
    free(m->megatron);
    free(m->zero);
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

struct status model_files_check(const struct model_files *m, const char *path)
{
    TRY(m->megatron == NULL ? status_ok() : megatron_files_check(m->megatron, path));
    TRY(m->zero == NULL ? status_ok() : zero_folder_check(m->zero, path));
    for (int i = 0; i < m->n_files; i++) {
        TRY(tensor_file_check(&m->files[i], path));
    }
    return status_ok();
}
