#include "model/megatron_files.h"

#include "core/log.h"
#include "io/torch_tensors.h"
#include "model/megatron_join.h"
#include "model/megatron_names.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 1 << 16 };

static struct status out_of_memory(const char *directory)
{
    return status_error(STATUS_MEMORY, "out of memory for the tensors of %s", directory);
}

/* ---- layer files ---- */

static struct status open_module(struct megatron_reading *r, int64_t module)
{
    char path[FILE_PATH_BYTES];
    for (int rank = 0; rank < r->n_ranks; rank++) {
        TRY(megatron_join_layer_path(path, r, module, rank));
        FAIL_IF(!file_exists(path), STATUS_DATA,
                "%s is half a checkpoint: it is of %lld layers and %d ranks of tensor "
                "parallelism, but has no %s",
                r->directory, (long long)r->n_layers, r->n_ranks, strrchr(path, '/') + 1);
        TRY(megatron_join_open(r->m, path));
    }
    return status_ok();
}

static struct status lacks(const struct megatron_reading *r, int64_t module, int rank, const char *name)
{
    return status_error(STATUS_DATA,
                        "%s: layer_%02lld-model_%02d-model_states.pt has no %.80s, which another rank has",
                        r->directory, (long long)module, rank, name);
}

/* Joins the tensors of a module, whose files are the last. */
static struct status join_module(struct megatron_reading *r, int64_t module)
{
    int first = r->m->n_files - r->n_ranks;
    for (int i = 0; i < r->m->files[first].n; i++) {
        struct megatron_shards s = {.name = r->m->files[first].tensors[i].name, .n = r->n_ranks};
        for (int k = 0; k < r->n_ranks; k++) {
            const struct torch_file *f = &r->m->files[first + k];
            s.of[k] = stored_tensor_find(f->tensors, f->n, s.name);
            if (s.of[k] == NULL) {
                return lacks(r, module, k, s.name);
            }
        }
        TRY(megatron_join(r, &s, module));
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

/* Opens the states of rank 0, which describe the run, where they are there and can be read. */
static struct status open_run(struct megatron_reading *r)
{
    char path[FILE_PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/" ZERO_FOLDER_STATES, r->directory);
    if (n < 0 || n >= (int)sizeof path || !file_exists(path)) {
        return status_ok();
    }
    struct status s = megatron_join_open(r->m, path);
    if (!failed(s)) {
        r->m->states = r->m->files[r->m->n_files - 1].root;
    }
    return s;
}

static struct status read_layers(struct megatron_reading *r)
{
    struct status run = open_run(r);
    if (failed(run)) {
        log_warning("%s", run.message); /* the weights are in other files */
    }
    TRY(megatron_join_look(r));
    TRY(r->n_ranks > 0 ? status_ok() : status_error(STATUS_DATA, "%s has no layer files", r->directory));
    for (int64_t module = MEGATRON_EMBEDDING; module <= r->n_layers + MEGATRON_BEHIND; module++) {
        bool has_weights = module == MEGATRON_EMBEDDING || module == r->n_layers + MEGATRON_BEHIND ||
                           (module >= MEGATRON_FIRST_LAYER && module < r->n_layers + MEGATRON_FIRST_LAYER);
        if (has_weights) {
            TRY(open_module(r, module));
            TRY(join_module(r, module));
        }
    }
    megatron_join_tell_drift(r);
    return status_ok();
}

struct status megatron_files_open_layers(struct megatron_files *m, const char *directory, int64_t n_layers)
{
    struct megatron_reading r = megatron_join_begin(m, directory, n_layers);
    return megatron_join_finish(&r, read_layers(&r));
}

/* ---- universal checkpoints ---- */

/* The tensor of a file: "param" of a dict, or the file itself. */
static const struct stored_tensor *tensor_of(const struct torch_file *f)
{
    const struct stored_tensor *t = stored_tensor_find(f->tensors, f->n, "param");
    return t != NULL ? t : stored_tensor_find(f->tensors, f->n, "tensor");
}

static const char *const kept_names[] = {"fp32", "exp_avg", "exp_avg_sq"}; /* by enum param_kept */

/* The path of what is kept of a parameter, which is there. */
static struct status kept_path(char path[FILE_PATH_BYTES], const char *directory, const char *name,
                               const char *kept)
{
    int n = snprintf(path, FILE_PATH_BYTES, "%s/%s/%s/%s.pt", directory, MEGATRON_UNIVERSAL, name, kept);
    FAIL_IF(n < 0 || n >= FILE_PATH_BYTES, STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
            FILE_PATH_BYTES - 1);
    return file_exists(path)
               ? status_ok()
               : status_error(STATUS_DATA, "%s is missing: copy all of the universal checkpoint", path);
}

/* Takes the tensor of an open file. */
static struct status take_kept(const struct stored_tensor **t, const struct torch_file *f, const char *path)
{
    *t = tensor_of(f);
    return *t != NULL && (*t)->unreadable == NULL
               ? status_ok()
               : status_error(STATUS_DATA, "%s has no tensor that kiln reads, neither alone nor as \"param\"",
                              path);
}

static bool same_shape(const struct stored_tensor *a, const struct stored_tensor *b)
{
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, (size_t)b->n_dims * sizeof *b->dims) == 0;
}

/* Files of moments are open while they are read only: the number of files that a process may open is
 * limited. */
static struct status open_moment(const struct megatron_files *m, int i, enum param_kept kept,
                                 struct megatron_moment *moment)
{
    char path[FILE_PATH_BYTES], name[PARAM_NAME_BYTES];
    const struct stored_tensor *t;
    const struct stored_tensor *weight = &m->tensors[PARAM_WEIGHT][i];
    CHECK(megatron_names_state(name, weight->name, m->n_layers), "%s", weight->name);
    TRY(kept_path(path, m->directory, name, kept_names[kept]));
    TRY(torch_file_open(&moment->file, path));
    TRY(take_kept(&t, &moment->file, path));
    moment->tensor = *t;
    moment->padding = stored_tensor_find(moment->file.tensors, moment->file.n, MEGATRON_PADDING);
    moment->tensor.name = weight->name;
    return same_shape(t, weight) ? status_ok()
                                 : status_error(STATUS_DATA, "%s/%s/%s: %s.pt has another shape than fp32.pt",
                                                m->directory, MEGATRON_UNIVERSAL, name, kept_names[kept]);
}

int megatron_files_find(const struct megatron_files *m, const char *name)
{
    int i = 0;
    while (i < m->n && strcmp(m->tensors[PARAM_WEIGHT][i].name, name) != 0) {
        i++;
    }
    return i < m->n ? i : -1;
}

struct status megatron_files_moment(const struct megatron_files *m, int i, enum param_kept kept,
                                    struct megatron_moment *moment)
{
    *moment = (struct megatron_moment){0};
    CHECK(m->has_moments || kept == PARAM_WEIGHT, "%s has no moments", m->directory);
    if (m->is_universal) {
        struct status s = open_moment(m, i, kept, moment);
        if (failed(s)) {
            megatron_moment_close(moment);
        }
        return s;
    }
    moment->tensor = m->tensors[kept][i];
    return status_ok();
}

void megatron_moment_close(struct megatron_moment *moment)
{
    torch_file_close(&moment->file);
    *moment = (struct megatron_moment){0};
}

/* A parameter, and its moments, which have its shape. */
static struct status open_parameter(struct megatron_reading *r, const char *name)
{
    char path[FILE_PATH_BYTES];
    const struct stored_tensor *t;
    const char *rest;
    int64_t module = megatron_names_module(name, &rest);
    TRY(kept_path(path, r->directory, name, "fp32"));
    TRY(megatron_join_open(r->m, path));
    TRY(take_kept(&t, &r->m->files[r->m->n_files - 1], path));
    TRY(megatron_join_add(r, t, module, rest));
    r->m->n_layers = r->n_layers;
    for (int kept = PARAM_EXP_AVG; kept < PARAM_N_KEPT; kept++) {
        struct megatron_moment moment;
        TRY(megatron_files_moment(r->m, r->m->n - 1, (enum param_kept)kept, &moment));
        megatron_moment_close(&moment);
    }
    return status_ok();
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* The names of the folders of parameters, sorted, in the reader's memory. */
static struct status list_parameters(struct megatron_reading *r, const char ***names, int *n)
{
    char path[FILE_PATH_BYTES];
    const char *rest;
    snprintf(path, sizeof path, "%s/%s", r->directory, MEGATRON_UNIVERSAL);
    DIR *dir = opendir(path);
    *names = calloc(MOST_PARAMETERS, sizeof **names);
    *n = 0;
    for (const struct dirent *e;
         dir != NULL && *names != NULL && *n < MOST_PARAMETERS && (e = readdir(dir)) != NULL;) {
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

static struct status read_universal(struct megatron_reading *r)
{
    const char **names, *rest;
    int n;
    int64_t last = 0;
    r->m->is_universal = r->m->has_moments = true;
    TRY(open_run(r));
    struct status s = list_parameters(r, &names, &n);
    for (int i = 0; i < n && !failed(s); i++) {
        int64_t module = megatron_names_module(names[i], &rest);
        last = module > last ? module : last;
    }
    megatron_join_guess_layers(r, last);
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
    struct megatron_reading r = megatron_join_begin(m, directory, n_layers);
    return megatron_join_finish(&r, read_universal(&r));
}

void megatron_files_close(struct megatron_files *m)
{
    for (int i = 0; i < m->n_files; i++) {
        torch_file_close(&m->files[i]);
    }
    for (int i = 0; i < m->n_joined; i++) {
        free(m->joined[i]);
    }
    for (int k = 0; k < m->n_ranks; k++) {
        zero_folder_close(&m->ranks[k]);
    }
    for (int kept = 0; kept < PARAM_N_KEPT; kept++) {
        free(m->tensors[kept]);
    }
    free(m->ranks);
    free(m->files);
    free(m->joined);
    bump_fini(&m->memory);
    *m = (struct megatron_files){0};
}

struct status megatron_files_check(const struct megatron_files *m, const char *directory)
{
    for (int i = 0; i < m->n_files; i++) {
        TRY(file_map_check(&m->files[i].map, directory));
    }
    for (int k = 0; k < m->n_ranks; k++) {
        TRY(zero_folder_check(&m->ranks[k], directory));
    }
    return status_ok();
}
