/* Each side is a list of groups of tensors: the files of a directory, or the weights and the moments of a
 * model.
 *
 * Where both sides are safetensors files that are no model's, names are compared as they are, in the order of
 * the files, in which a log of tensors has them in the order of computation.  Otherwise both are read as
 * models: under kiln's names, whatever program wrote them, sorted so that layer 2 comes before layer 10. */
#define _GNU_SOURCE
#include "cmd/inspect.h"

#include "core/log.h"
#include "io/tensor_file.h"
#include "model/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char MOMENTS[] = "moments";

struct entry {
    const char *name;
    const struct stored_tensor *stored;
    const struct model_tensor *of; /* the model's tensor that it is; NULL: none */
};

struct group {
    char name[256];
    struct tensor_file file;  /* file with the tensors, or */
    struct model_files model; /* model with the tensors */
    struct model_heads heads; /* attention heads, whose parts lie in one tensor in some programs' files */
    struct entry *entries;    /* [n] */
    int n;
};

struct side {
    const char *path;
    struct group *groups; /* [n] */
    int n;
};

struct comparison {
    struct tensor_tolerance within;
    json_int_t n_compared, n_different;
    json_t *first; /* NULL: none yet */
    json_t *differences, *only_in_a, *only_in_b;
};

/* ---- a side ---- */

static struct group *add_group(struct side *s, const char *name)
{
    struct group *groups = realloc(s->groups, (size_t)(s->n + 1) * sizeof *groups);
    if (groups == NULL) {
        return NULL;
    }
    s->groups = groups;
    struct group *g = &groups[s->n++];
    *g = (struct group){.n = 0};
    snprintf(g->name, sizeof g->name, "%s", name);
    return g;
}

static struct status no_memory(const char *path)
{
    return status_error(STATUS_MEMORY, "out of memory for the tensors of %s", path);
}

static struct status add_file(struct side *s, const char *path, const char *name)
{
    struct group *g = add_group(s, name);
    if (g == NULL) {
        return no_memory(path);
    }
    TRY(tensor_file_open(&g->file, path));
    g->entries = calloc((size_t)g->file.n + 1, sizeof *g->entries);
    for (int i = 0; g->entries != NULL && i < g->file.n; i++) {
        g->entries[g->n++] = (struct entry){.name = g->file.tensors[i].name, .stored = &g->file.tensors[i]};
    }
    return g->entries == NULL ? no_memory(path) : status_ok();
}

static int by_layer(const void *a, const void *b)
{
    return strverscmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int is_safetensors(const struct dirent *e)
{
    return inspect_ends_with(e->d_name, ".safetensors");
}

static struct status add_directory(struct side *s)
{
    struct dirent **names;
    int n = scandir(s->path, &names, is_safetensors, versionsort);
    FAIL_IF(n < 0, STATUS_IO, "cannot read the directory %s: %s", s->path, strerror(errno));
    struct status status = status_ok();
    for (int i = 0; i < n; i++) {
        char path[CHECKPOINT_PATH_BYTES];
        status = failed(status) ? status : checkpoint_path(path, "%s/%s", s->path, names[i]->d_name);
        status = failed(status) ? status : add_file(s, path, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return status;
}

/* Leaves heads->n at 0 where neither config.json nor a GGUF file's keys say it; tensors of an unknown type
 * are compared by their own names. */
static void find_family(const struct model_family **family, struct model_heads *heads,
                        const struct model_place *p)
{
    char path[CHECKPOINT_PATH_BYTES];
    json_t *root;
    void *config;
    bool is_said = model_place_is_gguf(p) || model_place_find_config(path, p->directory);
    *family = model_families[0];
    *heads = (struct model_heads){0};
    const char *from = model_place_is_gguf(p) ? p->directory : path;
    if (is_said && !failed(model_family_read_config(family, &config, &root, from))) {
        *heads = (*family)->sizes(config).heads;
        free(config);
        json_decref(root);
    }
}

/* Copies of tied tensors, buffers and whatever else a run does not read are left out. */
static bool is_weight(const struct model_tensor *t)
{
    return !t->as.tied && t->as.part != NAMES_BUFFER && t->as.part != NAMES_STATE;
}

static struct status add_weights(struct side *s, const struct model_place *place)
{
    const struct model_family *family;
    struct model_heads heads;
    find_family(&family, &heads, place);
    struct group *g = add_group(s, "weights");
    if (g == NULL) {
        return no_memory(s->path);
    }
    TRY(model_files_open(&g->model, place, family, 0));
    g->heads = heads;
    g->heads.n = g->model.n_heads > 0 ? g->model.n_heads : heads.n;
    g->entries = calloc((size_t)g->model.n_tensors + 1, sizeof *g->entries);
    for (int i = 0; g->entries != NULL && i < g->model.n_tensors; i++) {
        const struct model_tensor *t = &g->model.tensors[i];
        if (is_weight(t)) {
            g->entries[g->n++] = (struct entry){.name = t->as.name, .stored = &t->stored, .of = t};
        }
    }
    if (g->entries == NULL) {
        return no_memory(s->path);
    }
    qsort(g->entries, (size_t)g->n, sizeof *g->entries, by_layer);
    return status_ok();
}

static struct status add_model(struct side *s)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct model_place place;
    TRY(model_place_find(&place, s->path));
    TRY(add_weights(s, &place));
    if (place.tensors[0] != '\0') {
        return status_ok();
    }
    if (!model_place_has(path, place.directory, CHECKPOINT_OPTIMIZER ".safetensors")) {
        if (model_place_has(path, place.directory, "manifest.json")) {
            log_info("%s has its moments in slices of several ranks: they are not compared", s->path);
        }
        return status_ok();
    }
    TRY(add_file(s, path, MOMENTS));
    struct group *moments = &s->groups[s->n - 1];
    qsort(moments->entries, (size_t)moments->n, sizeof *moments->entries, by_layer);
    return status_ok();
}

/* A safetensors file, or a directory of such files that is no model. */
static bool is_plain(const char *path)
{
    char found[CHECKPOINT_PATH_BYTES];
    struct dirent **names;
    if (!file_is_directory(path)) {
        return inspect_ends_with(path, ".safetensors");
    }
    if (model_place_find_config(found, path) || model_place_has(found, path, "manifest.json")) {
        return false;
    }
    int n = scandir(path, &names, is_safetensors, NULL);
    for (int i = 0; i < n; i++) {
        free(names[i]);
    }
    if (n >= 0) {
        free(names);
    }
    return n > 0;
}

static struct status open_side(struct side *s, bool plain)
{
    return !plain ? add_model(s) : file_is_directory(s->path) ? add_directory(s) : add_file(s, s->path, "");
}

static void close_side(struct side *s)
{
    for (int i = 0; i < s->n; i++) {
        tensor_file_close(&s->groups[i].file);
        model_files_close(&s->groups[i].model);
        free(s->groups[i].entries);
    }
    free(s->groups);
}

/* ---- the comparison ---- */

static const struct group *find_group(const struct side *s, const char *name)
{
    for (int i = 0; i < s->n; i++) {
        if (strcmp(s->groups[i].name, name) == 0) {
            return &s->groups[i];
        }
    }
    return NULL;
}

static const struct entry *find_entry(const struct group *g, const char *name)
{
    for (int i = 0; g != NULL && i < g->n; i++) {
        if (strcmp(g->entries[i].name, name) == 0) {
            return &g->entries[i];
        }
    }
    return NULL;
}

/* JSON has no infinities. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_string(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static json_t *numbers(const int64_t *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(values[i]));
    }
    return list;
}

static json_t *describe(const struct stored_tensor *a, const struct stored_tensor *b,
                        const struct tensor_diff *d)
{
    return json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "shape",
                     numbers(a->dims, a->n_dims), "dtype_a", a->dtype_label, "dtype_b", b->dtype_label,
                     "first_at", inspect_place(a, d->first), "a", number(d->a), "b", number(d->b), "max_abs",
                     number(d->max_abs), "max_abs_at", inspect_place(a, d->largest), "max_rel",
                     number(d->max_rel), "elements_that_differ", (json_int_t)d->n_different, "elements",
                     (json_int_t)d->n);
}

/* Other programs' models have none. */
static void leave_out_moments(struct side *s, const struct side *other)
{
    struct group *last = s->n > 0 ? &s->groups[s->n - 1] : NULL;
    if (last != NULL && strcmp(last->name, MOMENTS) == 0 && find_group(other, MOMENTS) == NULL) {
        log_info("%s has the optimizer's moments, %s has not: only weights are compared", s->path,
                 other->path);
        last->n = 0;
    }
}

/* "weights: NAME" */
static json_t *name_in(const char *group, const char *name)
{
    char text[CHECKPOINT_PATH_BYTES];
    snprintf(text, sizeof text, "%s%s%s", group, *group == '\0' ? "" : ": ", name);
    return json_text(text);
}

/* Takes the details of a difference. */
static void add_difference(struct comparison *c, const char *group, const char *name, json_t *details,
                           const char *text)
{
    json_t *place = name_in(group, name);
    c->n_different++;
    json_array_append_new(c->differences, json_pack("{s:O, s:s}", "tensor", place, "difference", text));
    if (c->first == NULL) {
        c->first = json_pack("{s:O}", "tensor", place);
        json_object_update(c->first, details);
    }
    json_decref(place);
    json_decref(details);
}

static bool same_dims(const struct stored_tensor *a, const struct stored_tensor *b)
{
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0;
}

static struct status compare_tensors(struct comparison *c, const char *group, const char *name,
                                     const struct stored_tensor *a, const struct stored_tensor *b)
{
    struct tensor_diff d;
    char text[120];
    c->n_compared++;
    if (!same_dims(a, b)) {
        add_difference(c, group, name,
                       json_pack("{s:o, s:o}", "shape_a", numbers(a->dims, a->n_dims), "shape_b",
                                 numbers(b->dims, b->n_dims)),
                       "another shape");
        return status_ok();
    }
    TRY(tensor_diff_compare(&d, a, b, c->within));
    if (d.first >= 0) {
        snprintf(text, sizeof text, "%lld of %lld elements, max abs %.3g, max rel %.3g",
                 (long long)d.n_different, (long long)d.n, d.max_abs, d.max_rel);
        add_difference(c, group, name, describe(a, b, &d), text);
    }
    return status_ok();
}

/* An entry as it can be read: the part of a tensor that it stands for, or the whole if that has no parts. */
static struct status readable(struct stored_tensor *t, void **list, const struct group *g,
                              const struct entry *e)
{
    *t = *e->stored;
    *list = NULL;
    struct status s = e->of == NULL ? status_ok() : model_tensor_view(t, list, e->of, g->heads);
    return s.code == STATUS_MEMORY ? s : status_ok();
}

static struct status compare_entries(struct comparison *c, const struct group *g, const struct entry *e,
                                     const struct group *other)
{
    const struct entry *found = find_entry(other, e->name);
    struct stored_tensor a, b;
    void *list_a, *list_b;
    if (found == NULL) {
        return status_ok();
    }
    TRY(readable(&a, &list_a, g, e));
    struct status s = readable(&b, &list_b, other, found);
    s = failed(s) ? s : compare_tensors(c, g->name, e->name, &a, &b);
    free(list_b);
    free(list_a);
    return s;
}

static void list_missing(json_t *list, const struct group *g, const struct group *other)
{
    for (int i = 0; i < g->n; i++) {
        if (find_entry(other, g->entries[i].name) == NULL) {
            json_array_append_new(list, name_in(g->name, g->entries[i].name));
        }
    }
}

static struct status compare_sides(struct comparison *c, const struct side *a, const struct side *b)
{
    for (int i = 0; i < a->n; i++) {
        const struct group *g = &a->groups[i], *other = find_group(b, g->name);
        for (int k = 0; k < g->n; k++) {
            TRY(compare_entries(c, g, &g->entries[k], other));
        }
        list_missing(c->only_in_a, g, other);
    }
    for (int i = 0; i < b->n; i++) {
        list_missing(c->only_in_b, &b->groups[i], find_group(a, b->groups[i].name));
    }
    return c->n_compared > 0
               ? status_ok()
               : status_error(STATUS_DATA, "%s and %s have no tensor of one name", a->path, b->path);
}

static json_t *report_of(const struct comparison *c, const struct side *a, const struct side *b)
{
    json_t *report = json_pack("{s:o, s:o, s:f, s:f, s:I, s:I}", "a", json_text(a->path), "b",
                               json_text(b->path), "atol", c->within.atol, "rtol", c->within.rtol, "compared",
                               c->n_compared, "different", c->n_different);
    if (c->first != NULL) {
        json_object_set(report, "first", c->first);
        json_object_set(report, "differences", c->differences);
    }
    if (json_array_size(c->only_in_a) + json_array_size(c->only_in_b) > 0) {
        json_object_set(report, "only_in_a", c->only_in_a);
        json_object_set(report, "only_in_b", c->only_in_b);
    }
    return report;
}

struct status inspect_diff(json_t **report, bool *same, const char *path_a, const char *path_b,
                           struct tensor_tolerance within)
{
    struct side a = {.path = path_a}, b = {.path = path_b};
    struct comparison c = {
        .within = within, .differences = json_array(), .only_in_a = json_array(), .only_in_b = json_array()};
    bool plain = is_plain(path_a) && is_plain(path_b);
    struct status s = open_side(&a, plain);
    if (!failed(s)) {
        s = open_side(&b, plain);
    }
    if (!failed(s)) {
        leave_out_moments(&a, &b);
        leave_out_moments(&b, &a);
        s = compare_sides(&c, &a, &b);
    }
    if (!failed(s)) {
        *report = report_of(&c, &a, &b);
        *same = c.n_different == 0 && json_array_size(c.only_in_a) + json_array_size(c.only_in_b) == 0;
        s = *report == NULL ? no_memory(path_a) : status_ok();
    }
    json_decref(c.first);
    json_decref(c.differences);
    json_decref(c.only_in_a);
    json_decref(c.only_in_b);
    close_side(&a);
    close_side(&b);
    return s;
}
