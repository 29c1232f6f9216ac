#include "model/megatron_join.h"

#include "core/log.h"
#include "io/stored_rects.h"
#include "model/megatron_names.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 1 << 16, NAMES_BYTES = 64 << 20 };

struct megatron_reading megatron_join_begin(struct megatron_files *m, const char *directory, int64_t n_layers)
{
    *m = (struct megatron_files){.memory = bump_with_limit(NAMES_BYTES), .n_updates = -1};
    snprintf(m->directory, sizeof m->directory, "%s", directory);
    return (struct megatron_reading){.m = m, .directory = directory, .n_layers = n_layers};
}

struct status megatron_join_finish(const struct megatron_reading *r, struct status s)
{
    r->m->n_layers = r->n_layers;
    return failed(s) ? s : stored_tensor_check_names(r->m->tensors[PARAM_WEIGHT], r->m->n, r->directory);
}

static struct status out_of_memory(const char *directory)
{
    return status_error(STATUS_MEMORY, "out of memory for the tensors of %s", directory);
}

struct status megatron_join_open(struct megatron_files *m, const char *path)
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

struct status megatron_join_add(struct megatron_reading *r, const struct stored_tensor *t, int64_t module,
                                const char *rest)
{
    struct megatron_files *m = r->m;
    char name[PARAM_NAME_BYTES];
    CHECK(t != NULL, "no tensor %s", rest);
    struct stored_tensor *tensors = realloc(m->tensors[PARAM_WEIGHT], (size_t)(m->n + 1) * sizeof *tensors);
    if (tensors == NULL) {
        return out_of_memory(r->directory);
    }
    m->tensors[PARAM_WEIGHT] = tensors;
    FAIL_IF(m->n == MOST_TENSORS || !megatron_names_put(name, module, rest, r->n_layers), STATUS_DATA,
            "%s: the tensor %.80s of module %lld is no part of a model of %lld layers", r->directory, rest,
            (long long)module, (long long)r->n_layers);
    m->tensors[PARAM_WEIGHT][m->n] = *t;
    m->tensors[PARAM_WEIGHT][m->n].name = bump_copy(&m->memory, name, strlen(name));
    return m->tensors[PARAM_WEIGHT][m->n++].name == NULL ? bump_status(&m->memory, r->directory)
                                                         : status_ok();
}

void megatron_join_guess_layers(struct megatron_reading *r, int64_t last)
{
    if (r->n_layers == 0 && last > MEGATRON_BEHIND) {
        r->n_layers = last - MEGATRON_BEHIND;
    }
}

struct status megatron_join_layer_path(char path[FILE_PATH_BYTES], const struct megatron_reading *r,
                                       int64_t module, int rank)
{
    int n = snprintf(path, FILE_PATH_BYTES, "%s/layer_%02lld-model_%02d-model_states.pt", r->directory,
                     (long long)module, rank);
    return n > 0 && n < FILE_PATH_BYTES
               ? status_ok()
               : status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", r->directory,
                              FILE_PATH_BYTES - 1);
}

struct status megatron_join_look(struct megatron_reading *r)
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
    megatron_join_guess_layers(r, last);
    FAIL_IF(last > r->n_layers + MEGATRON_BEHIND, STATUS_DATA,
            "%s has layer_%02lld, but config.json says %lld layers, of which the last file is "
            "layer_%02lld",
            r->directory, (long long)last, (long long)r->n_layers,
            (long long)(r->n_layers + MEGATRON_BEHIND));
    return ranks <= MEGATRON_MOST_RANKS
               ? status_ok()
               : status_error(STATUS_DATA, "%s has the layer files of %d ranks; kiln reads 1 to %d",
                              r->directory, ranks, MEGATRON_MOST_RANKS);
}

/* ---- joining what ranks share ---- */

/* Takes over a block that lives as long as the reader. */
static struct status keep(struct megatron_reading *r, void *block)
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

static struct status is_empty(const struct megatron_reading *r, const struct megatron_shards *s,
                              int64_t module, int rank)
{
    return status_error(STATUS_DATA, "%s: %.80s of module %02lld has no elements on rank %d", r->directory,
                        s->name, (long long)module, rank);
}

/* On rank 0, with which others are compared. */
static struct status is_unusable(const struct megatron_reading *r, const struct megatron_shards *s,
                                 int64_t module, enum megatron_cut cut)
{
    return status_error(STATUS_DATA,
                        "%s: %.80s of module %02lld has %d dims of %s on rank 0, but must be a %s",
                        r->directory, s->name, (long long)module, s->of[0]->n_dims, s->of[0]->dtype_label,
                        cut == MEGATRON_BY_COL ? "matrix of floats" : "vector or matrix of floats");
}

static struct status mismatch(const struct megatron_reading *r, const struct megatron_shards *s,
                              int64_t module, int rank)
{
    const struct stored_tensor *a = s->of[0], *b = s->of[rank];
    return status_error(STATUS_DATA,
                        "%s: %.80s of module %02lld has on rank %d %d dims [%lld, %lld] of %s, but on rank "
                        "0 %d dims [%lld, %lld] of %s: they are of different checkpoints",
                        r->directory, s->name, (long long)module, rank, b->n_dims, (long long)b->dims[0],
                        (long long)b->dims[1], b->dtype_label, a->n_dims, (long long)a->dims[0],
                        (long long)a->dims[1], a->dtype_label);
}

/* Shards are equal in all dims, since kiln and Megatron cut into equal parts. */
static struct status check_shards(const struct megatron_reading *r, const struct megatron_shards *s,
                                  int64_t module, enum megatron_cut cut)
{
    for (int k = 0; k < s->n; k++) {
        const struct stored_tensor *a = s->of[0], *b = s->of[k];
        bool fits = b->unreadable == NULL && a->dtype == b->dtype && a->n_dims == b->n_dims &&
                    memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0 &&
                    stored_tensor_converts(b->dtype, DTYPE_F32) && stored_tensor_is_dense(b) &&
                    (a->n_dims == 1 || a->n_dims == 2) && (cut != MEGATRON_BY_COL || a->n_dims == 2);
        if (!fits) {
            return k == 0 ? is_unusable(r, s, module, cut) : mismatch(r, s, module, k);
        }
        if (b->bytes == 0) {
            return is_empty(r, s, module, k);
        }
    }
    return status_ok();
}

enum { AT_ONCE = 4096 }; /* elements */

/* Whether elements [at, at + n) of `a` are those from `at_b` on of `b`. */
static struct status compare_run(const struct stored_tensor *a, int64_t at, const struct stored_tensor *b,
                                 int64_t at_b, int64_t n, bool *same)
{
    enum { FEW = 64 }; /* most tensors differ in the first ones */
    double of_a[FEW], of_b[FEW];
    *same = true;
    for (int64_t done = 0; done < n && *same; done += FEW) {
        int64_t here = n - done < FEW ? n - done : FEW;
        TRY(stored_tensor_read_elements(a, at + done, tensor_1d(of_a, DTYPE_F64, here)));
        TRY(stored_tensor_read_elements(b, at_b + done, tensor_1d(of_b, DTYPE_F64, here)));
        *same = memcmp(of_a, of_b, (size_t)here * sizeof *of_a) == 0;
    }
    return status_ok();
}

/* Slices of two ranks are never the same, unless their rows are: of zeros, or of padded words. */
static struct status check_slices(const struct megatron_reading *r, const struct megatron_shards *s,
                                  int64_t module)
{
    const struct stored_tensor *t = s->of[0];
    int64_t n = (int64_t)(t->bytes / dtype_bytes(t->dtype)), width = n / t->dims[0];
    for (int k = 1; k < s->n && t->dims[0] > 1; k++) {
        for (int j = 0; j < k; j++) {
            bool same, alike = false;
            TRY(compare_run(s->of[k], 0, s->of[j], 0, n, &same));
            TRY(same ? compare_run(s->of[k], 0, s->of[k], width, width, &alike) : status_ok());
            FAIL_IF(same && !alike, STATUS_DATA,
                    "%s: ranks %d and %d have the same slice of %.80s of module %02lld, bit "
                    "for bit: one rank's file is there under two names",
                    r->directory, j, k, s->name, (long long)module);
        }
    }
    return status_ok();
}

/* Lays the complete tensor over the shards, by rows or columns. */
static struct status lay_over(struct megatron_reading *r, struct stored_tensor *t,
                              const struct megatron_shards *s, enum megatron_cut cut)
{
    struct stored_rects rects = {0};
    int64_t n[2] = {s->of[0]->dims[0], s->of[0]->n_dims == 2 ? s->of[0]->dims[1] : 1};
    void *list;
    for (int64_t k = 0; k < s->n; k++) {
        int64_t at[2] = {cut == MEGATRON_BY_COL ? 0 : k * n[0], cut == MEGATRON_BY_COL ? k * n[1] : 0};
        stored_rects_add(&rects, at, s->of[k], (int64_t[2]){0}, n);
    }
    TRY(stored_rects_take(&rects, t, &list));
    return keep(r, list);
}

/* Compares the copy of rank k with that of rank 0: their largest difference, NAN if a number of one is not
 * finite, and the sums of squares of the difference and of both. */
static struct status compare_copy(const struct megatron_shards *s, int k, double *largest, double squares[3])
{
    double first[AT_ONCE], own[AT_ONCE];
    int64_t n_all = (int64_t)(s->of[0]->bytes / dtype_bytes(s->of[0]->dtype));
    *largest = 0;
    memset(squares, 0, 3 * sizeof *squares);
    for (int64_t at = 0; at < n_all; at += AT_ONCE) {
        int64_t n = n_all - at < AT_ONCE ? n_all - at : AT_ONCE;
        TRY(stored_tensor_read_elements(s->of[0], at, tensor_1d(first, DTYPE_F64, n)));
        TRY(stored_tensor_read_elements(s->of[k], at, tensor_1d(own, DTYPE_F64, n)));
        for (int64_t i = 0; i < n; i++) {
            double difference = fabs(own[i] - first[i]);
            *largest = difference <= *largest ? *largest : difference; /* a NAN stays */
            squares[0] += difference * difference;
            squares[1] += first[i] * first[i];
            squares[2] += own[i] * own[i];
        }
    }
    *largest = isfinite(squares[1] + squares[2]) ? *largest : NAN;
    return status_ok();
}

/* Notes how far copies differ from the first one; whether they do.  STATUS_DATA: a drift of half their norm
 * is none. */
static struct status compare_copies(struct megatron_reading *r, const struct stored_tensor *t,
                                    const struct megatron_shards *s, bool *differ)
{
    *differ = false;
    for (int k = 1; k < s->n; k++) {
        double largest, squares[3];
        TRY(compare_copy(s, k, &largest, squares));
        FAIL_IF(isnan(largest), STATUS_NUMERIC,
                "%s: the copies that ranks 0 and %d have of %s are not finite", r->directory, k, t->name);
        FAIL_IF(!s->are_moments && squares[0] > 0.25 * fmax(squares[1], squares[2]), STATUS_DATA,
                "%s: the copies that ranks 0 and %d have of %s differ by up to %g, more than "
                "half their norm: their files are of different runs",
                r->directory, k, t->name, largest);
        *differ = *differ || largest > 0;
        r->drifted = largest > r->drift ? t->name : r->drifted;
        r->drift = fmax(r->drift, largest);
    }
    return status_ok();
}

/* Elements of the mean over the ranks, in fp64. */
static struct status average_run(const struct stored_tensor *t, const struct megatron_shards *s, int64_t at,
                                 int64_t n, unsigned char *to)
{
    double mean[AT_ONCE] = {0}, own[AT_ONCE];
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
static struct status average(struct megatron_reading *r, struct stored_tensor *t,
                             const struct megatron_shards *s)
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
    for (int64_t at = 0; at < n_all; at += AT_ONCE) {
        int64_t n = n_all - at < AT_ONCE ? n_all - at : AT_ONCE;
        TRY(average_run(t, s, at, n, values + (size_t)at * item));
    }
    t->data = t->storage = values;
    t->storage_bytes = t->bytes;
    t->rects = NULL;
    return status_ok();
}

struct status megatron_join_shards(struct megatron_reading *r, struct stored_tensor *t,
                                   const struct megatron_shards *s, int64_t module)
{
    enum megatron_cut cut = megatron_names_cut(s->name);
    TRY(check_shards(r, s, module, cut));
    if (s->n == 1) {
        return status_ok();
    }
    TRY(cut == MEGATRON_COPIED ? status_ok() : check_slices(r, s, module));
    t->dims[0] *= cut == MEGATRON_BY_ROW ? s->n : 1;
    t->dims[1] *= cut == MEGATRON_BY_COL ? s->n : 1;
    return cut == MEGATRON_COPIED ? average(r, t, s) : lay_over(r, t, s, cut);
}

struct status megatron_join(struct megatron_reading *r, const struct megatron_shards *s, int64_t module)
{
    TRY(megatron_join_add(r, s->of[0], module, s->name));
    return megatron_join_shards(r, &r->m->tensors[PARAM_WEIGHT][r->m->n - 1], s, module);
}

void megatron_join_tell_drift(const struct megatron_reading *r)
{
    if (r->n_ranks > 1 && r->drift > 0) {
        log_warning("%s: the copies that its %d ranks have of norms and biases differ by up to %g (%s); they "
                    "are averaged",
                    r->directory, r->n_ranks, r->drift, r->drifted);
    } else if (r->n_ranks > 1) {
        log_info("%s: joined %d ranks, whose copies of norms and biases are equal", r->directory, r->n_ranks);
    }
}
