/* model_dir_weights: copies the tensors of a model's files to where a task's parameters are kept, and
 * accounts for every tensor on both sides. */
#include "model/model_dir.h"

#include "core/log.h"
#include "io/stored_rects.h"
#include "model/checkpoint.h"

#include <stdlib.h>
#include <string.h>

struct reading {
    const struct model_dir *m;
    /* tables of the complete model, and of the part of it that is read */
    const struct param_table *params, *own;
    const struct weight_sink *sink;
    struct load_report *report;
    int n_wanted[NAMES_N_PARTS]; /* parameters of the table */
};

enum { SHAPE_BYTES = 192 }; /* bytes of the text of STORED_MAX_DIMS dims */

static bool is_real(enum dtype t)
{
    return t == DTYPE_F32 || t == DTYPE_F16 || t == DTYPE_BF16 || t == DTYPE_F64;
}

/* The number of rows after the pieces of the vocabulary was checked when the directory was opened. */
static bool shape_fits(const struct reading *r, const struct stored_tensor *e, const struct param *p)
{
    bool fits = e->n_dims == p->n_dims;
    for (int i = 0; fits && i < p->n_dims; i++) {
        bool of_words = i == 0 && p->split == PARAM_BY_WORD && e->dims[0] == r->m->vocab_rows;
        fits = e->dims[i] == p->full[i] || of_words;
    }
    return fits;
}

static void describe_dims(char text[SHAPE_BYTES], int n_dims, const int64_t *dims)
{
    size_t n = 1;
    text[0] = '[';
    for (int i = 0; i < n_dims; i++) {
        n += (size_t)snprintf(text + n, SHAPE_BYTES - n, "%s%lld", i == 0 ? "" : ", ", (long long)dims[i]);
    }
    snprintf(text + n, SHAPE_BYTES - n, "]");
}

/* The dims that a tensor of the files should have: those of the parameter, of all parts where it is joined,
 * exchanged if the files have the transpose. */
static void wanted_dims(int64_t dims[2], const struct model_tensor *t, struct model_heads heads,
                        const struct param *p, bool turned)
{
    struct model_family_share share = {0, 1, 1};
    share = t->join == NULL ? share : model_family_join_share(t->join, t->part, heads);
    int64_t rows = p->dims[0] / share.own * share.all;
    dims[0] = turned ? p->dims[1] : rows;
    dims[1] = turned ? rows : p->dims[1];
}

static struct status wrong_shape(const struct reading *r, const struct model_tensor *t, const struct param *p)
{
    char has[SHAPE_BYTES], wants[SHAPE_BYTES];
    bool turned = t->stored.n_dims == 2 && (t->join != NULL ? t->join->transposed : t->as.order.transposed);
    int64_t dims[STORED_MAX_DIMS], wanted[2] = {0};
    memcpy(dims, t->stored.dims, sizeof dims);
    if (turned) {
        dims[0] = t->stored.dims[1];
        dims[1] = t->stored.dims[0];
    }
    wanted_dims(wanted, t, r->m->family->sizes(r->m->config).heads, p, turned && p->n_dims == 2);
    describe_dims(has, t->stored.n_dims, dims);
    describe_dims(wants, p->n_dims, wanted);
    bool is_turned = t->stored.n_dims == 2 && p->n_dims == 2 && dims[0] == wanted[1] && dims[1] == wanted[0];
    const char *note = !is_turned ? ""
                       : turned   ? ": it is the transpose of what such files hold, [in, out]"
                                  : ": it is the transpose of what such files hold, [out, in]";
    return status_error(STATUS_DATA, "%s: the tensor %.80s has the shape %s, but config.json needs %s%s",
                        r->m->path, t->stored.name, has, wants, note);
}

/* kiln's heads multiply with the word embeddings; a separate decoder would be another model. */
static struct status check_tied(const struct reading *r, const struct param *p, const struct model_tensor *t)
{
    const struct model_tensor *copy = model_files_find(&r->m->files, p->name, true);
    if (copy == NULL || copy == t || r->n_wanted[r->m->family->tied_part] == 0) {
        return status_ok();
    }
    bool same;
    TRY(status_context(stored_tensor_compare(&same, &copy->stored, &t->stored), "%s", r->m->path));
    FAIL_IF(!same, STATUS_DATA,
            "%s: %.80s differs from %.80s; only models whose decoder is tied to the word "
            "embeddings are supported",
            r->m->path, copy->stored.name, t->stored.name);
    return status_ok();
}

/* Checks a tensor against its parameter, and leaves a view of what is to be read, of which the caller frees
 * `list`. */
static struct status fit(const struct reading *r, const struct param *p, const struct model_tensor *t,
                         struct stored_tensor *view, void **list)
{
    struct status s = model_tensor_view(view, list, t, r->m->family->sizes(r->m->config).heads);
    if (s.code != STATUS_MEMORY && (failed(s) || !shape_fits(r, view, p))) {
        free(*list);
        s = wrong_shape(r, t, p);
    }
    return s;
}

/* Lays the rows that a tensor lacks, up to `rows`, over the last row of another. */
static struct status fill_rows(struct stored_tensor *view, void **list, const struct stored_tensor *fill,
                               int64_t rows)
{
    struct stored_rects rects = {0};
    int64_t has = view->dims[0], cols = view->n_dims == 2 ? view->dims[1] : 1;
    stored_rects_add(&rects, (int64_t[2]){0}, view, (int64_t[2]){0}, (int64_t[2]){has, cols});
    for (int64_t row = has; row < rows; row++) {
        stored_rects_add(&rects, (int64_t[2]){row, 0}, fill, (int64_t[2]){fill->dims[0] - 1, 0},
                         (int64_t[2]){1, cols});
    }
    free(*list);
    view->dims[0] = rows;
    return stored_rects_take(&rects, view, list);
}

static struct status check_finite(const struct model_dir *m, enum param_kept kept, const struct param *p,
                                  const struct model_tensor *t, int64_t from, tensor values)
{
    int64_t i = tensor_find_nonfinite(values);
    return i < 0
               ? status_ok()
               : status_error(STATUS_NUMERIC,
                              "%s: %s %.80s is not finite (element %lld is %g): the file is damaged, or its "
                              "training had diverged; use an earlier checkpoint",
                              m->path, kept == PARAM_WEIGHT ? "the weight" : "a moment of", t->stored.name,
                              (long long)param_full_index(p, from + i), tensor_get(values, i));
}

struct status model_dir_read_tensor(const struct model_dir *m, enum param_kept kept, const struct param *p,
                                    const struct model_tensor *t, int64_t from, tensor *values)
{
    const struct reading r = {.m = m};
    struct stored_tensor view;
    void *list;
    TRY(fit(&r, p, t, &view, &list));
    struct status s = status_ok();
    if (p->split == PARAM_BY_WORD && t->fill != NULL && view.dims[0] < p->full[0]) {
        s = fill_rows(&view, &list, t->fill, p->full[0]);
    }
    if (!param_is_full(p)) { /* a rank may have rows of words that the files lack */
        memset(values->data, 0, tensor_bytes(*values));
    } else if (values->n_dims == p->n_dims && values->dims[0] == p->dims[0] && view.dims[0] < p->dims[0]) {
        *values = tensor_slice(*values, 0, view.dims[0]);
    }
    int64_t n = tensor_count(*values);
    struct tensor_slice slice = checkpoint_slice(p, from, from + n);
    s = failed(s) ? s
                  : stored_tensor_read_part(&view, &slice.part, tensor_1d(values->data, values->dtype, n));
    free(list);
    TRY(status_context(s, "%s", m->path));
    return check_finite(m, kept, p, t, from, *values);
}

const struct model_tensor *model_dir_tensor(const struct model_dir *m, const struct param *p)
{
    const struct model_tensor *t = model_files_find(&m->files, p->name, false);
    return t != NULL ? t : model_files_find(&m->files, p->name, true);
}

static struct status check(const struct reading *r, const struct param *p, const struct model_tensor *t)
{
    struct stored_tensor view;
    void *list = NULL;
    struct status s = fit(r, p, t, &view, &list);
    if (!failed(s)) {
        free(list);
    }
    return s;
}

static struct status read_param(const struct reading *r, const struct param *p, bool *found)
{
    const struct model_tensor *t = model_dir_tensor(r->m, p);
    *found = t != NULL;
    if (t == NULL) {
        return status_ok();
    }
    TRY(check(r, p, t));
    FAIL_IF(t->stored.unreadable == NULL && !is_real(t->stored.dtype), STATUS_DATA,
            "%s: the tensor %.80s has the dtype %s; weights are F32, F16, BF16 or F64", r->m->path,
            t->stored.name, t->stored.dtype_label);
    TRY(check_tied(r, p, t));
    const struct param *own = r->own == r->params ? p : param_table_find(r->own, p->name);
    tensor values = NULL_TENSOR;
    TRY(own == NULL ? status_ok() : r->sink->place(r->sink->self, own, &values));
    if (tensor_is_null(values)) {
        return status_ok();
    }
    TRY(model_dir_read_tensor(r->m, PARAM_WEIGHT, own, t, 0, &values));
    return r->sink->put(r->sink->self, own, values);
}

static struct status read_all(struct reading *r)
{
    for (int i = 0; i < r->params->n; i++) {
        const struct param *p = &r->params->params[i];
        bool found;
        TRY(read_param(r, p, &found));
        if (found) {
            r->report->n[LOAD_LOADED][names_hf_part(r->m->family, p->name)]++;
        } else {
            const struct param *own = param_table_find(r->own, p->name);
            tensor values = NULL_TENSOR;
            TRY(own == NULL ? status_ok() : r->sink->current(r->sink->self, own, &values));
            load_report_add_new(r->report, p, values);
        }
    }
    return status_ok();
}

static bool is_off(const struct reading *r, const struct model_tensor *t)
{
    return r->m->family->is_off != NULL && r->m->family->is_off(r->m->config, t->as.name);
}

/* A tensor that no parameter uses: normal if the task lacks its part or it is switched off, otherwise an
 * error, since the model in the files computes something else. */
static struct status account_for(const struct reading *r, const struct model_tensor *t)
{
    enum names_part part = t->as.part;
    if (param_table_find(r->params, t->as.name) != NULL) {
        r->report->n_tied += t->as.tied && model_files_find(&r->m->files, t->as.name, false) != NULL;
        return status_ok();
    }
    FAIL_IF(r->n_wanted[part] > 0 && !is_off(r, t), STATUS_DATA,
            "%s: the files hold %.80s, but the %s that config.json describes (%lld layers) "
            "has no such tensor",
            r->m->path, t->stored.name, r->m->family->class_of(r->report->task),
            (long long)r->m->family->sizes(r->m->config).n_layers);
    if (part == NAMES_OTHER && r->report->n[LOAD_IGNORED][part] == 0) {
        memcpy(r->report->other, t->as.name, sizeof r->report->other);
    }
    r->report->n[LOAD_IGNORED][part]++;
    return status_ok();
}

/* A part may be new only as a unit: half a head is damage. */
static struct status check_new(const struct reading *r, unsigned may_be_new)
{
    for (int p = 0; p < NAMES_N_PARTS; p++) {
        int n = r->report->n[LOAD_NEW][p];
        if (n == 0 || ((may_be_new >> p & 1U) != 0 && n == r->n_wanted[p])) {
            continue;
        }
        const char *first = NULL;
        for (int i = 0; first == NULL; i++) {
            const char *name = r->params->params[i].name;
            bool missing = model_dir_tensor(r->m, &r->params->params[i]) == NULL;
            first = missing && (int)names_hf_part(r->m->family, name) == p ? name : NULL;
        }
        return status_error(
            STATUS_DATA,
            "%s lacks %d of the %d tensors of %s* that %s needs here, such as %s: the files hold a %s",
            r->m->path, n, r->n_wanted[p], r->m->family->parts[p], r->m->family->class_of(r->report->task),
            first, r->m->family->class_of(r->m->task));
    }
    return status_ok();
}

/* ---- naming all that does not fit ---- */

/* Whether the files may lack all of a part, and do. */
static bool may_lack(const struct reading *r, int part, unsigned may_be_new)
{
    int n = 0;
    for (int i = 0; i < r->params->n; i++) {
        const struct param *p = &r->params->params[i];
        n += (int)names_hf_part(r->m->family, p->name) == part && model_dir_tensor(r->m, p) == NULL;
    }
    return (may_be_new >> part & 1U) != 0 && n == r->n_wanted[part];
}

/* Counts what does not fit, and with `tell` names it. */
static int count_misfits(const struct reading *r, unsigned may_be_new, bool tell)
{
    int n = 0;
    for (int i = 0; i < r->params->n; i++) {
        const struct param *p = &r->params->params[i];
        const struct model_tensor *t = model_dir_tensor(r->m, p);
        struct status s = t == NULL ? status_ok() : check(r, p, t);
        bool lacks = t == NULL && !may_lack(r, names_hf_part(r->m->family, p->name), may_be_new);
        bool counted = t == NULL || t->part == 0; /* a joined tensor is named once */
        if (tell && lacks) {
            log_warning("missing: %s", p->name);
        } else if (tell && failed(s) && counted) {
            log_warning("misshapen: %s", s.message);
        }
        n += lacks || (failed(s) && counted);
    }
    for (int i = 0; i < r->m->files.n_tensors; i++) {
        const struct model_tensor *t = &r->m->files.tensors[i];
        bool extra = param_table_find(r->params, t->as.name) == NULL && r->n_wanted[t->as.part] > 0 &&
                     t->part == 0 && !is_off(r, t);
        if (tell && extra) {
            log_warning("extra: %s", t->stored.name);
        }
        n += extra;
    }
    return n;
}

/* The first misfit ends the reading; where there are several, all are named before. */
static struct status name_misfits(const struct reading *r, unsigned may_be_new, struct status s)
{
    if (s.code == STATUS_DATA && count_misfits(r, may_be_new, false) > 1) {
        (void)count_misfits(r, may_be_new, true);
    }
    return s;
}

static struct status read_and_account(struct reading *r, unsigned may_be_new)
{
    TRY(read_all(r));
    for (int i = 0; i < r->m->files.n_tensors; i++) {
        TRY(account_for(r, &r->m->files.tensors[i]));
    }
    return check_new(r, may_be_new);
}

static struct status read_all_into(struct reading *r, enum model_task task, unsigned may_be_new)
{
    const struct model_dir *m = r->m;
    *r->report = (struct load_report){.family = m->family,
                                      .task = task,
                                      .n_rows = m->family->sizes(m->config).vocab_size,
                                      .n_words = m->tokenizer.n};
    for (int i = 0; i < r->params->n; i++) {
        r->n_wanted[names_hf_part(m->family, r->params->params[i].name)]++;
    }
    TRY(name_misfits(r, may_be_new, read_and_account(r, may_be_new)));
    r->report->n[LOAD_IGNORED][NAMES_STATE] += m->files.n_beside;
    return model_files_check(&m->files, m->path);
}

struct status model_dir_read_into(const struct model_dir *m, const struct param_table *params,
                                  const struct weight_sink *sink, enum model_task task, unsigned may_be_new,
                                  struct load_report *report)
{
    struct param_table all = {0};
    struct reading r = {.m = m, .params = params, .own = params, .sink = sink, .report = report};
    struct status s = status_ok();
    if (!param_part_is_all(&params->part)) { /* so that every tensor of the files is accounted for */
        s = model_dir_declare(m, &all, task);
        r.params = &all;
    }
    s = failed(s) ? s : read_all_into(&r, task, may_be_new);
    param_table_fini(&all);
    return s;
}

struct status model_dir_read_weights(const struct model_dir *m, const struct param_table *params,
                                     tensor master, enum model_task task, unsigned may_be_new,
                                     struct load_report *report)
{
    struct weight_sink sink = weight_sink_of(&master);
    return model_dir_read_into(m, params, &sink, task, may_be_new, report);
}

/* ---- a parameter at a time, for who writes them ---- */

/* A sink that no values are wanted for: names and shapes are checked. */
static struct status want_none(void *self, const struct param *p, tensor *values)
{
    (void)self, (void)p;
    *values = NULL_TENSOR;
    return status_ok();
}

static struct status want_no_put(void *self, const struct param *p, tensor values)
{
    (void)self, (void)values;
    return status_error(STATUS_INTERNAL, "%s was read", p->name);
}

struct status model_dir_check(const struct model_dir *m, const struct param_table *params,
                              enum model_task task, struct load_report *report)
{
    const struct weight_sink none = {NULL, want_none, want_no_put, want_none};
    return model_dir_read_into(m, params, &none, task, 0, report);
}

struct status model_dir_source_open(struct model_dir_source *s, const struct model_dir *m,
                                    const struct param_table *params, enum model_task task,
                                    struct load_report *report)
{
    *s = (struct model_dir_source){.m = m, .params = params, .task = task};
    return model_dir_check(m, params, task, report);
}

/* Reads into memory for one parameter, which is cleared first, since the files may have fewer rows. */
static struct status read_one(void *self, const struct param *p, tensor *values)
{
    struct model_dir_source *s = self;
    struct param whole = *p;
    const struct model_tensor *t = model_dir_tensor(s->m, p);
    float *memory = calloc((size_t)param_count(p) + 1, sizeof *memory);
    whole.offset = 0;
    free(s->values.data);
    *values = s->values = param_view(&whole, tensor_1d(memory, DTYPE_F32, param_count(p)));
    CHECK(t != NULL, "there is no %s", p->name);
    tensor read = s->values; /* a copy, which is cut to the rows that there are */
    return memory == NULL ? status_error(STATUS_MEMORY, "out of memory for %s", p->name)
                          : model_dir_read_tensor(s->m, PARAM_WEIGHT, p, t, 0, &read);
}

struct weight_source model_dir_source_of(struct model_dir_source *s)
{
    return (struct weight_source){.self = s, .read = read_one};
}

struct status model_dir_source_close(struct model_dir_source *s)
{
    struct status status = s->m == NULL ? status_ok() : model_files_check(&s->m->files, s->m->path);
    free(s->values.data);
    *s = (struct model_dir_source){0};
    return status;
}
