#include "model/megatron_state.h"

#include "core/integers.h"
#include "core/log.h"
#include "io/torch_optimizer.h"
#include "model/part_sink.h"

#include <stdlib.h>
#include <string.h>

/* An open folder. */
struct megatron_run {
    struct model_dir m;
    json_t *position;
    enum model_task task;
};

/* ---- the table's functions ---- */

/* Fills the rows of words that the files lack, from `rows` on, as the loaders of such files do: with the
 * row that is kept for it, or else the last of rows that are no words. */
static struct status fill_rows(const struct megatron_run *r, const struct megatron_moment *from, tensor whole)
{
    int64_t rows = from->tensor.dims[0], cols = whole.dims[1];
    const struct stored_tensor *row = from->padding;
    size_t row_bytes = (size_t)cols * dtype_bytes(whole.dtype);
    unsigned char *to = (unsigned char *)whole.data + (size_t)rows * row_bytes;
    bool has_row = row != NULL && row->unreadable == NULL && stored_tensor_is_dense(row) &&
                   stored_tensor_converts(row->dtype, DTYPE_F32) &&
                   (int64_t)(row->bytes / dtype_bytes(row->dtype)) == cols;
    if (rows >= whole.dims[0] || (!has_row && rows <= r->m.tokenizer.n)) {
        return status_ok();
    }
    if (has_row) {
        TRY(stored_tensor_read_elements(row, 0, tensor_1d(to, whole.dtype, cols)));
    } else {
        memcpy(to, to - row_bytes, row_bytes);
    }
    for (int64_t i = rows + 1; i < whole.dims[0]; i++) {
        memcpy(to + (size_t)(i - rows) * row_bytes, to, row_bytes);
    }
    return status_ok();
}

/* A sink before another, which fills rows. */
struct filling {
    const struct megatron_run *r;
    const struct weight_sink *to;
};

static struct status filling_place(void *self, const struct param *p, tensor *values)
{
    const struct filling *f = self;
    return f->to->place(f->to->self, p, values);
}

static struct status filling_put(void *self, const struct param *p, tensor values)
{
    const struct filling *f = self;
    const struct megatron_files *files = f->r->m.files.megatron;
    if (p->split == PARAM_BY_WORD && values.dims[0] < p->dims[0]) {
        const struct model_tensor *t = model_files_find(&f->r->m.files, p->name, false);
        struct megatron_moment weight;
        values.dims[0] = p->dims[0];
        TRY(megatron_files_moment(files, megatron_files_find(files, t->stored.name), MEGATRON_WEIGHT,
                                  &weight));
        struct status s = fill_rows(f->r, &weight, values);
        megatron_moment_close(&weight);
        TRY(s);
    }
    return f->to->put(f->to->self, p, values);
}

static struct status filling_current(void *self, const struct param *p, tensor *values)
{
    const struct filling *f = self;
    return f->to->current(f->to->self, p, values);
}

static struct status read_whole_model(const struct megatron_run *r, const struct param_table *all,
                                      const struct weight_sink *sink)
{
    struct filling f = {r, sink};
    const struct weight_sink before = {&f, filling_place, filling_put, filling_current};
    struct load_report report;
    return model_dir_read_into(&r->m, all, &before, r->task, 0, &report);
}

/* Rows are filled before a part of them is taken. */
static struct status read_weights(const void *self, const struct param_table *params,
                                  const struct weight_sink *sink)
{
    const struct megatron_run *r = self;
    struct param_table all = {0};
    struct part_sink part;
    if (param_part_is_all(&params->part)) {
        return read_whole_model(r, params, sink);
    }
    struct status s = model_dir_declare(&r->m, &all, r->task);
    if (!failed(s)) {
        struct weight_sink whole = part_sink_open(&part, params, sink);
        s = read_whole_model(r, &all, &whole);
        part_sink_close(&part);
    }
    param_table_fini(&all);
    return s;
}

/* Elements [from, to) of what is here of a parameter, out of the whole. */
static void copy_part(const struct param *p, int64_t from, int64_t to, tensor values, const float *whole)
{
    int64_t cols = p->dims[p->n_dims - 1];
    for (int64_t i = from, n; i < to; i += n) {
        n = int_smaller(to - i, cols - i % cols);
        tensor run = tensor_slice(values, i - from, n);
        stored_tensor_convert(run.dtype, run.data, DTYPE_F32, whole + param_full_index(p, i), n);
    }
}

/* Reads a moment of a whole parameter into memory of its shape. */
static struct status read_whole(const struct megatron_run *r, const struct param *p, enum megatron_kept kept,
                                tensor whole)
{
    const struct model_tensor *t = model_files_find(&r->m.files, p->name, false);
    struct megatron_moment moment;
    if (t == NULL) {
        return status_error(STATUS_DATA, "%s has no moments of %s", r->m.path, p->name);
    }
    TRY(megatron_files_moment(r->m.files.megatron, megatron_files_find(r->m.files.megatron, t->stored.name),
                              kept, &moment));
    struct model_tensor like = model_tensor_like(t, &moment.tensor);
    struct status s = model_dir_read_tensor(&r->m, p, &like, 0, whole);
    if (!failed(s) && p->split == PARAM_BY_WORD) {
        s = fill_rows(r, &moment, whole);
    }
    megatron_moment_close(&moment);
    int64_t bad = failed(s) ? -1 : tensor_find_nonfinite(whole);
    return bad < 0 ? s
                   : status_error(STATUS_NUMERIC,
                                  "%s: a moment of %s is not finite (element %lld is %g): use an earlier "
                                  "checkpoint",
                                  r->m.path, p->name, (long long)bad, tensor_get(whole, bad));
}

/* Fills what a slice of the flat buffer, from `begin` on, has of a parameter. */
static struct status fill(const struct megatron_run *r, const struct param *p, enum megatron_kept kept,
                          int64_t begin, tensor flat)
{
    int64_t from, to;
    struct param full = *p;
    checkpoint_overlap(p, begin, tensor_count(flat), &from, &to);
    if (from >= to) {
        return status_ok();
    }
    memcpy(full.dims, p->full, sizeof full.dims);
    memset(full.first, 0, sizeof full.first);
    full.offset = 0;
    float *memory = calloc((size_t)param_count(&full) + 1, sizeof *memory);
    tensor whole = param_view(&full, tensor_1d(memory, DTYPE_F32, param_count(&full)));
    struct status s = memory == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for a moment of %s", p->name)
                          : read_whole(r, &full, kept, whole);
    if (!failed(s)) {
        copy_part(p, from, to, tensor_slice(flat, p->offset + from - begin, to - from), memory);
    }
    free(memory);
    return s;
}

static struct status read_moments(const void *self, const struct param_table *params, int64_t begin,
                                  tensor exp_avg, tensor exp_avg_sq)
{
    const struct megatron_run *r = self;
    memset(exp_avg.data, 0, tensor_bytes(exp_avg));
    memset(exp_avg_sq.data, 0, tensor_bytes(exp_avg_sq));
    for (int i = 0; i < params->n && r->m.files.megatron->has_moments; i++) {
        TRY(fill(r, &params->params[i], MEGATRON_EXP_AVG, begin, exp_avg));
        TRY(fill(r, &params->params[i], MEGATRON_EXP_AVG_SQ, begin, exp_avg_sq));
    }
    return model_files_check(&r->m.files, r->m.path);
}

static void close_run(void *self)
{
    struct megatron_run *r = self;
    model_dir_close(&r->m);
    json_decref(r->position);
    free(r);
}

static const struct training_state_kind megatron_kind = {.read_weights = read_weights,
                                                         .read_moments = read_moments,
                                                         .read_extra = training_state_no_extra,
                                                         .find_file = training_state_no_file,
                                                         .close = close_run};

/* ---- opening ---- */

/* What no shape shows, as the loader of Megatron compares it. */
static struct status check_arguments(const struct megatron_run *r)
{
    const struct pickle_node *states = r->m.files.megatron->states;
    struct model_family_sizes own = model_dir_sizes(&r->m);
    const struct {
        const char *name;
        int64_t own;
    } rows[] = {{"num_layers", own.n_layers}, {"num_attention_heads", own.n_heads}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t says = megatron_files_argument(states, rows[i].name);
        if (says > 0 && says != rows[i].own) {
            return status_error(STATUS_DATA,
                                "%s was trained with %s %lld, but this run has %lld: give the flags of that "
                                "run",
                                r->m.path, rows[i].name, (long long)says, (long long)rows[i].own);
        }
    }
    return status_ok();
}

/* A count in the states of rank 0; -1: there is none. */
static int64_t count_of(const struct megatron_files *f, const char *name)
{
    int64_t n;
    return torch_optimizer_number(&n, pickle_find(f->states, name)) && n >= 0 ? n : -1;
}

/* The steps of the run, and those of them without an update: moments that begin at zero are corrected as
 * those of a first step. */
static struct status take_position(struct megatron_run *r)
{
    const struct megatron_files *f = r->m.files.megatron;
    int64_t step = count_of(f, "iteration"), skipped = count_of(f, "skipped_steps");
    step = step < 0 ? count_of(f, "global_steps") : step;
    if (step < 0) {
        return status_error(STATUS_DATA,
                            "%s has no " ZERO_FOLDER_STATES " that says its iteration: copy it from the "
                            "checkpoint that the folder was made of",
                            r->m.path);
    }
    skipped = f->n_updates >= 0 ? step - f->n_updates : skipped < 0 ? 0 : skipped;
    skipped = f->has_moments ? skipped : step;
    if (skipped < 0 || skipped > step) {
        return status_error(STATUS_DATA, "%s is at step %lld, but its optimizer counts %lld updates",
                            r->m.path, (long long)step, (long long)(step - skipped));
    }
    r->position = json_pack("{s:i, s:I, s:I, s:I, s:I}", "phase", 1, "step", (json_int_t)step, "global_step",
                            (json_int_t)step, "n_skipped", (json_int_t)skipped, "consumed_samples",
                            (json_int_t)megatron_files_argument(f->states, "consumed_train_samples"));
    return r->position == NULL
               ? status_error(STATUS_MEMORY, "out of memory for the position of %s", r->m.path)
               : status_ok();
}

static struct status open_run(struct megatron_run *r, const char *folder,
                              const struct training_state_place *place)
{
    r->task = place->task;
    TRY(model_dir_open_given(&r->m, folder, place->given));
    CHECK(r->m.files.megatron != NULL, "%s is read as another kind", folder);
    TRY(check_arguments(r));
    TRY(take_position(r));
    if (place->given.config != NULL) {
        TRY(status_context(r->m.family == place->given.family
                               ? r->m.family->same_architecture(r->m.config, place->given.config)
                               : status_error(STATUS_DATA, "it is a %s model", r->m.family->name),
                           "%s has another architecture than this run", folder));
    }
    if (!r->m.files.megatron->has_moments) {
        log_warning(
            "%s has no state of an optimizer: moments start at zero, and the optimizer counts steps from 1",
            folder);
    }
    log_info("%s: kiln cannot use its random states; --seed decides dropout", folder);
    return status_ok();
}

bool megatron_state_is_one(const char *folder)
{
    char path[CHECKPOINT_PATH_BYTES];
    return model_place_has(path, folder, MEGATRON_FIRST_FILE) || megatron_files_has_states(folder);
}

struct status megatron_state_open(struct training_state *s, const char *folder,
                                  const struct training_state_place *place)
{
    struct megatron_run *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %s", folder);
    }
    *s = (struct training_state){.kind = &megatron_kind, .self = r};
    TRY(checkpoint_path(s->path, "%s", folder));
    TRY(open_run(r, folder, place)); /* who opens a state closes it after a failure */
    s->vocab_hash = r->m.tokenizer.hash;
    s->position = r->position;
    return status_ok();
}

/* The folder that "latest_universal" names, or the directory itself. */
static struct status find_universal(char folder[CHECKPOINT_PATH_BYTES], const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(model_place_named(folder, directory, "latest_universal"));
    if (folder[0] == '\0') {
        TRY(checkpoint_path(folder, "%s", directory));
    }
    return model_place_has(path, folder, MEGATRON_UNIVERSAL)
               ? status_ok()
               : status_error(STATUS_NO_CHECKPOINT,
                              "%s is no universal checkpoint: it has neither a folder " MEGATRON_UNIVERSAL
                              " nor a latest_universal that names a folder with it",
                              directory);
}

struct status megatron_state_open_universal(struct training_state *s,
                                            const struct training_state_place *place)
{
    char folder[CHECKPOINT_PATH_BYTES];
    TRY(find_universal(folder, place->directory));
    return megatron_state_open(s, folder, place);
}
