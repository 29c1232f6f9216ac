#include "model/megatron_files.h"

#include "core/log.h"
#include "io/stored_runs.h"
#include "io/torch_tensors.h"
#include "model/megatron_names.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 1024, MOST_TENSORS = 1 << 16, NAMES_BYTES = 64 << 20 };

struct reading {
    struct megatron_files *m;
    const char *directory;
    int64_t n_layers;
    int n_ranks;
    double drift; /* the largest difference of copies */
    const char *drifted;
};

static struct status out_of_memory(const char *directory)
{
    return status_error(STATUS_MEMORY, "out of memory for the tensors of %s", directory);
}

static struct status open_file(struct megatron_files *m, const char *path)
{
    struct torch_file *files = realloc(m->files, (size_t)(m->n_files + 1) * sizeof *files);
    if (files == NULL) {
        return out_of_memory(path);
    }
    m->files = files;
    TRY(torch_file_open(&m->files[m->n_files], path));
    m->n_files++;
    return status_ok();
}

/* Lists a tensor under another name. */
static struct status add(struct reading *r, const struct stored_tensor *t, int64_t module, const char *rest)
{
    struct megatron_files *m = r->m;
    char name[PARAM_NAME_BYTES];
    CHECK(t != NULL, "no tensor %s", rest);
    struct stored_tensor *tensors = realloc(m->tensors, (size_t)(m->n + 1) * sizeof *tensors);
    if (tensors == NULL) {
        return out_of_memory(r->directory);
    }
    m->tensors = tensors;
    if (m->n == MOST_TENSORS || !megatron_names_put(name, module, rest, r->n_layers)) {
        return status_error(STATUS_DATA,
                            "%s: the tensor %.80s of module %lld is no part of a model of %lld layers",
                            r->directory, rest, (long long)module, (long long)r->n_layers);
    }
    m->tensors[m->n] = *t;
    m->tensors[m->n].name = bump_copy(&m->memory, name, strlen(name));
    return m->tensors[m->n++].name == NULL ? bump_status(&m->memory, r->directory) : status_ok();
}

/* Where nobody says how many layers there are, the last module is the norm behind them. */
static void guess_layers(struct reading *r, int64_t last)
{
    if (r->n_layers == 0 && last > MEGATRON_BEHIND) {
        r->n_layers = last - MEGATRON_BEHIND;
    }
}

/* ---- joining what ranks share ---- */

/* The shards of a tensor, by rank. */
struct shards {
    const struct stored_tensor *of[MOST_RANKS];
    const char *name;
    int n;
};

/* Takes over a block that lives as long as the reader. */
static struct status keep(struct reading *r, void *block)
{
    struct megatron_files *m = r->m;
    void **joined = block == NULL ? NULL : realloc(m->joined, (size_t)(m->n_joined + 1) * sizeof *joined);
    if (joined == NULL) {
        free(block);
        return out_of_memory(r->directory);
    }
    m->joined = joined;
    m->joined[m->n_joined++] = block;
    return status_ok();
}

static struct status mismatch(const struct reading *r, const struct shards *s, int64_t module, int rank)
{
    const struct stored_tensor *a = s->of[0], *b = s->of[rank];
    return status_error(STATUS_DATA,
                        "%s: %.80s of layer_%02lld-model_%02d has %d dims [%lld, %lld] of %s, but that of "
                        "model_00 %d dims [%lld, %lld] of %s: they are of different checkpoints",
                        r->directory, s->name, (long long)module, rank, b->n_dims, (long long)b->dims[0],
                        (long long)b->dims[1], b->dtype_label, a->n_dims, (long long)a->dims[0],
                        (long long)a->dims[1], a->dtype_label);
}

/* Shards are equal in all dims, since kiln and Megatron cut into equal parts. */
static struct status check_shards(const struct reading *r, const struct shards *s, int64_t module,
                                  enum megatron_cut cut)
{
    for (int k = 0; k < s->n; k++) {
        const struct stored_tensor *a = s->of[0], *b = s->of[k];
        bool fits = b->unreadable == NULL && a->dtype == b->dtype && a->n_dims == b->n_dims &&
                    memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0 &&
                    stored_tensor_converts(b->dtype, DTYPE_F32) && stored_tensor_is_dense(b) &&
                    (a->n_dims == 1 || a->n_dims == 2) && (cut != MEGATRON_BY_COL || a->n_dims == 2);
        if (!fits) {
            return mismatch(r, s, module, k);
        }
    }
    return status_ok();
}

/* Lays the whole tensor over the shards, by rows or columns. */
static struct status lay_over(struct reading *r, struct stored_tensor *t, const struct shards *s,
                              enum megatron_cut cut)
{
    struct stored_runs runs = {.item_bytes = dtype_bytes(t->dtype)};
    int64_t rows = cut == MEGATRON_BY_COL ? t->dims[0] : 1;
    int64_t n = (int64_t)(s->of[0]->bytes / runs.item_bytes) / rows;
    void *list;
    for (int64_t row = 0; row < rows; row++) {
        for (int k = 0; k < s->n; k++) {
            stored_runs_add_tensor(&runs, s->of[k], row * n, n);
        }
    }
    TRY(stored_runs_take(&runs, t, &list));
    return keep(r, list);
}

enum { AVERAGED = 4096 }; /* elements at a time */

/* Notes how far copies differ from the first one; whether they do. */
static struct status compare_copies(struct reading *r, const struct stored_tensor *t, const struct shards *s,
                                    bool *differ)
{
    double first[AVERAGED], own[AVERAGED];
    int64_t n_all = (int64_t)(t->bytes / dtype_bytes(t->dtype));
    *differ = false;
    for (int k = 1; k < s->n; k++) {
        for (int64_t at = 0; at < n_all; at += AVERAGED) {
            int64_t n = n_all - at < AVERAGED ? n_all - at : AVERAGED;
            TRY(stored_tensor_read_elements(s->of[0], at, tensor_1d(first, DTYPE_F64, n)));
            TRY(stored_tensor_read_elements(s->of[k], at, tensor_1d(own, DTYPE_F64, n)));
            for (int64_t i = 0; i < n; i++) {
                double difference = fabs(own[i] - first[i]);
                *differ = *differ || difference > 0;
                r->drifted = difference > r->drift ? t->name : r->drifted;
                r->drift = fmax(r->drift, difference);
            }
        }
    }
    return status_ok();
}

/* Elements of the mean over the ranks, in fp64. */
static struct status average_run(const struct stored_tensor *t, const struct shards *s, int64_t at, int64_t n,
                                 unsigned char *to)
{
    double mean[AVERAGED] = {0}, own[AVERAGED];
    for (int k = 0; k < s->n; k++) {
        TRY(stored_tensor_read_elements(s->of[k], at, tensor_1d(own, DTYPE_F64, n)));
        for (int64_t i = 0; i < n; i++) {
            mean[i] += own[i];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        mean[i] /= s->n;
    }
    stored_tensor_convert(t->dtype, to, DTYPE_F64, mean, n);
    return status_ok();
}

/* Copies that differ are averaged in memory; else those of the first rank are read. */
static struct status average(struct reading *r, struct stored_tensor *t, const struct shards *s)
{
    bool differ;
    size_t item = dtype_bytes(t->dtype);
    int64_t n_all = (int64_t)(t->bytes / item);
    TRY(compare_copies(r, t, s, &differ));
    if (!differ) {
        return status_ok();
    }
    unsigned char *values = malloc(t->bytes + 1);
    TRY(keep(r, values));
    for (int64_t at = 0; at < n_all; at += AVERAGED) {
        int64_t n = n_all - at < AVERAGED ? n_all - at : AVERAGED;
        TRY(average_run(t, s, at, n, values + (size_t)at * item));
    }
    t->data = t->storage = values;
    t->storage_bytes = t->bytes;
    t->pieces = NULL;
    return status_ok();
}

static struct status join(struct reading *r, const struct shards *s, int64_t module)
{
    enum megatron_cut cut = megatron_names_cut(s->name);
    TRY(check_shards(r, s, module, cut));
    TRY(add(r, s->of[0], module, s->name));
    struct stored_tensor *t = &r->m->tensors[r->m->n - 1];
    if (s->n == 1) {
        return status_ok();
    }
    t->dims[0] *= cut == MEGATRON_BY_ROW ? s->n : 1;
    t->dims[1] *= cut == MEGATRON_BY_COL ? s->n : 1;
    return cut == MEGATRON_COPIED ? average(r, t, s) : lay_over(r, t, s, cut);
}

/* ---- layer files ---- */

static struct status layer_path(char path[FILE_PATH_BYTES], const struct reading *r, int64_t module, int rank)
{
    int n = snprintf(path, FILE_PATH_BYTES, "%s/layer_%02lld-model_%02d-model_states.pt", r->directory,
                     (long long)module, rank);
    return n > 0 && n < FILE_PATH_BYTES
               ? status_ok()
               : status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", r->directory,
                              FILE_PATH_BYTES - 1);
}

/* The last module, and the number of ranks, that file names tell. */
static struct status look(struct reading *r)
{
    DIR *dir = opendir(r->directory);
    int64_t last = 0;
    int ranks = 0;
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        int module, rank, end = 0;
        if (sscanf(e->d_name, "layer_%5d-model_%5d-model_states.pt%n", &module, &rank, &end) == 2 &&
            end > 0 && e->d_name[end] == '\0' && module >= 0 && rank >= 0) {
            last = module > last ? module : last;
            ranks = rank + 1 > ranks ? rank + 1 : ranks;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    r->n_ranks = ranks;
    guess_layers(r, last);
    if (last > r->n_layers + MEGATRON_BEHIND) {
        return status_error(
            STATUS_DATA,
            "%s has layer_%02lld, but config.json says %lld layers, of which the last file is "
            "layer_%02lld",
            r->directory, (long long)last, (long long)r->n_layers,
            (long long)(r->n_layers + MEGATRON_BEHIND));
    }
    return ranks >= 1 && ranks <= MOST_RANKS
               ? status_ok()
               : status_error(STATUS_DATA, "%s has the layer files of %d ranks; kiln reads 1 to %d",
                              r->directory, ranks, MOST_RANKS);
}

static struct status open_module(struct reading *r, int64_t module)
{
    char path[FILE_PATH_BYTES];
    for (int rank = 0; rank < r->n_ranks; rank++) {
        TRY(layer_path(path, r, module, rank));
        if (!file_exists(path)) {
            return status_error(STATUS_DATA,
                                "%s is half a checkpoint: it is of %lld layers and %d ranks of tensor "
                                "parallelism, but has no %s",
                                r->directory, (long long)r->n_layers, r->n_ranks, strrchr(path, '/') + 1);
        }
        TRY(open_file(r->m, path));
    }
    return status_ok();
}

static struct status lacks(const struct reading *r, int64_t module, int rank, const char *name)
{
    return status_error(STATUS_DATA,
                        "%s: layer_%02lld-model_%02d-model_states.pt has no %.80s, which another rank has",
                        r->directory, (long long)module, rank, name);
}

/* Joins the tensors of a module, whose files are the last. */
static struct status join_module(struct reading *r, int64_t module)
{
    int first = r->m->n_files - r->n_ranks;
    for (int i = 0; i < r->m->files[first].n; i++) {
        struct shards s = {.name = r->m->files[first].tensors[i].name, .n = r->n_ranks};
        for (int k = 0; k < r->n_ranks; k++) {
            const struct torch_file *f = &r->m->files[first + k];
            s.of[k] = stored_tensor_find(f->tensors, f->n, s.name);
            if (s.of[k] == NULL) {
                return lacks(r, module, k, s.name);
            }
        }
        TRY(join(r, &s, module));
    }
    for (int k = 1; k < r->n_ranks; k++) {
        const struct torch_file *f = &r->m->files[first + k], *zero = &r->m->files[first];
        for (int i = 0; i < f->n; i++) {
            if (stored_tensor_find(zero->tensors, zero->n, f->tensors[i].name) == NULL) {
                return lacks(r, module, 0, f->tensors[i].name);
            }
        }
    }
    return status_ok();
}

static void tell_drift(const struct reading *r)
{
    if (r->n_ranks > 1 && r->drift > 0) {
        log_warning("%s: the copies that its %d ranks have of norms and biases differ by up to %g (%s); they "
                    "are averaged",
                    r->directory, r->n_ranks, r->drift, r->drifted);
    } else if (r->n_ranks > 1) {
        log_info("%s: joined %d ranks, whose copies of norms and biases are equal", r->directory, r->n_ranks);
    }
}

static struct status read_layers(struct reading *r)
{
    TRY(look(r));
    for (int64_t module = MEGATRON_EMBEDDING; module <= r->n_layers + MEGATRON_BEHIND; module++) {
        bool has_weights = module == MEGATRON_EMBEDDING || module == r->n_layers + MEGATRON_BEHIND ||
                           (module >= MEGATRON_FIRST_LAYER && module < r->n_layers + MEGATRON_FIRST_LAYER);
        if (has_weights) {
            TRY(open_module(r, module));
            TRY(join_module(r, module));
        }
    }
    tell_drift(r);
    return status_ok();
}

static struct status finish(struct megatron_files *m, struct status s, const char *directory)
{
    s = failed(s) ? s : stored_tensor_check_names(m->tensors, m->n, directory);
    if (failed(s)) {
        megatron_files_close(m);
    }
    return s;
}

struct status megatron_files_open_layers(struct megatron_files *m, const char *directory, int64_t n_layers)
{
    *m = (struct megatron_files){.memory = bump_with_limit(NAMES_BYTES)};
    struct reading r = {.m = m, .directory = directory, .n_layers = n_layers};
    return finish(m, read_layers(&r), directory);
}

/* ---- universal checkpoints ---- */

/* The tensor of a file: "param" of a dict, or the file itself. */
static const struct stored_tensor *tensor_of(const struct torch_file *f)
{
    const struct stored_tensor *t = stored_tensor_find(f->tensors, f->n, "param");
    return t != NULL ? t : stored_tensor_find(f->tensors, f->n, "tensor");
}

static struct status open_kept(struct reading *r, const struct stored_tensor **t, const char *name,
                               const char *kept)
{
    char path[FILE_PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/%s/%s/%s.pt", r->directory, MEGATRON_UNIVERSAL, name, kept);
    *t = NULL;
    if (n < 0 || n >= (int)sizeof path) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
                            FILE_PATH_BYTES - 1);
    }
    if (!file_exists(path)) {
        return status_error(STATUS_DATA, "%s is missing: copy all of the universal checkpoint", path);
    }
    TRY(open_file(r->m, path));
    *t = tensor_of(&r->m->files[r->m->n_files - 1]);
    return *t != NULL && (*t)->unreadable == NULL
               ? status_ok()
               : status_error(STATUS_DATA, "%s has no tensor that kiln reads, neither alone nor as \"param\"",
                              path);
}

/* A parameter, and its moments, which have its shape. */
static struct status open_parameter(struct reading *r, const char *name)
{
    static const char *const moments[] = {"exp_avg", "exp_avg_sq"};
    const struct stored_tensor *t, *moment;
    const char *rest;
    int64_t module = megatron_names_module(name, &rest);
    TRY(open_kept(r, &t, name, "fp32"));
    TRY(add(r, t, module, rest));
    t = &r->m->tensors[r->m->n - 1];
    for (int i = 0; i < 2; i++) {
        TRY(open_kept(r, &moment, name, moments[i]));
        bool same = moment->n_dims == t->n_dims &&
                    memcmp(moment->dims, t->dims, (size_t)t->n_dims * sizeof *t->dims) == 0;
        torch_file_close(&r->m->files[--r->m->n_files]);
        if (!same) {
            return status_error(STATUS_DATA, "%s/%s/%s: %s.pt has another shape than fp32.pt", r->directory,
                                MEGATRON_UNIVERSAL, name, moments[i]);
        }
    }
    return status_ok();
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* The names of the folders of parameters, sorted, in the reader's memory. */
static struct status list_parameters(struct reading *r, const char ***names, int *n)
{
    char path[FILE_PATH_BYTES];
    const char *rest;
    snprintf(path, sizeof path, "%s/%s", r->directory, MEGATRON_UNIVERSAL);
    DIR *dir = opendir(path);
    *names = calloc(MOST_TENSORS, sizeof **names);
    *n = 0;
    for (const struct dirent *e;
         dir != NULL && *names != NULL && *n < MOST_TENSORS && (e = readdir(dir)) != NULL;) {
        if (megatron_names_module(e->d_name, &rest) > 0) {
            (*names)[(*n)++] = bump_copy(&r->m->memory, e->d_name, strlen(e->d_name));
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    struct status s = *names == NULL ? out_of_memory(r->directory) : bump_status(&r->m->memory, path);
    if (*names != NULL && !failed(s)) {
        qsort(*names, (size_t)*n, sizeof **names, compare_names);
    }
    return s;
}

static struct status read_universal(struct reading *r)
{
    const char **names, *rest;
    int n;
    int64_t last = 0;
    struct status s = list_parameters(r, &names, &n);
    for (int i = 0; i < n && !failed(s); i++) {
        int64_t module = megatron_names_module(names[i], &rest);
        last = module > last ? module : last;
    }
    guess_layers(r, last);
    if (!failed(s) && n == 0) {
        s = status_error(STATUS_DATA,
                         "%s/%s has no folders of a pipeline's parameters, such as 3.input_layernorm.weight",
                         r->directory, MEGATRON_UNIVERSAL);
    }
    for (int i = 0; i < n && !failed(s); i++) {
        s = open_parameter(r, names[i]);
    }
    free((void *)names);
    return s;
}

struct status megatron_files_open_universal(struct megatron_files *m, const char *directory, int64_t n_layers)
{
    *m = (struct megatron_files){.memory = bump_with_limit(NAMES_BYTES)};
    struct reading r = {.m = m, .directory = directory, .n_layers = n_layers};
    return finish(m, read_universal(&r), directory);
}

void megatron_files_close(struct megatron_files *m)
{
    for (int i = 0; i < m->n_files; i++) {
        torch_file_close(&m->files[i]);
    }
    for (int i = 0; i < m->n_joined; i++) {
        free(m->joined[i]);
    }
    free(m->files);
    free(m->joined);
    free(m->tensors);
    bump_fini(&m->memory);
    *m = (struct megatron_files){0};
}

struct status megatron_files_check(const struct megatron_files *m, const char *directory)
{
    for (int i = 0; i < m->n_files; i++) {
        TRY(file_map_check(&m->files[i].map, directory));
    }
    return status_ok();
}
