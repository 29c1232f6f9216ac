#include "report/tensor_log.h"

#include "core/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "/tensor_logger_rank_R_step_S_micro_M.safetensors" */
enum { LONGEST_FILE_NAME = 120 };

/* ---- one tensor ---- */

static bool make_room(struct tensor_log *l)
{
    if (l->n < l->capacity) {
        return true;
    }
    int capacity = 2 * l->capacity + 64;
    struct safetensors_item *items = realloc(l->items, (size_t)capacity * sizeof *items);
    l->items = items == NULL ? l->items : items;
    char(*names)[TENSOR_LOG_NAME_BYTES] = realloc(l->names, (size_t)capacity * sizeof *names);
    l->names = names == NULL ? l->names : names;
    if (items == NULL || names == NULL) {
        l->status = status_error(STATUS_MEMORY, "out of memory for the names of %d tensors", capacity);
        return false;
    }
    l->capacity = capacity;
    return true;
}

/* Bytes from the first to the last element, gaps included. */
static size_t span_bytes(tensor t)
{
    int64_t n = 1;
    for (int i = 0; i < t.n_dims; i++) {
        n += (t.dims[i] - 1) * t.strides[i];
    }
    return (size_t)n * dtype_bytes(t.dtype);
}

/* A dense copy in host memory, valid until the next. */
static tensor copy_of(struct tensor_log *l, tensor t)
{
    tensor copy = t;
    exec_copy_out(&l->trainer->net.x, l->copy, t.data, span_bytes(t));
    copy.data = l->copy;
    if (tensor_is_dense(t)) {
        return copy;
    }
    size_t row = (size_t)t.dims[1] * dtype_bytes(t.dtype),
           stride = (size_t)t.strides[0] * dtype_bytes(t.dtype);
    for (size_t i = 1; i < (size_t)t.dims[0]; i++) {
        memmove((char *)l->copy + i * row, (char *)l->copy + i * stride, row);
    }
    return tensor_2d(l->copy, t.dtype, t.dims[0], t.dims[1]);
}

/* Announces or writes a tensor; `t` is in host memory if `on_host`.  Absent ones are null. */
static void log_tensor(struct tensor_log *l, const char *kind, const char *name, tensor t, bool on_host)
{
    if (tensor_is_null(t) || tensor_count(t) == 0 || failed(l->status)) {
        return;
    }
    if (!l->declaring) {
        safetensors_writer_put(&l->writer, on_host ? t : copy_of(l, t));
        return;
    }
    CHECK(t.n_dims == 2 || tensor_is_dense(t), "%s %s has %d dims and gaps", kind, name, t.n_dims);
    if (make_room(l)) {
        snprintf(l->names[l->n], sizeof l->names[l->n], "%s%s", kind, name);
        l->items[l->n++] = (struct safetensors_item){.shape = t};
        l->bytes += tensor_bytes(t);
        size_t span = on_host ? 0 : span_bytes(t);
        l->copy_bytes = span > l->copy_bytes ? span : l->copy_bytes;
    }
}

/* ---- what there is, in the order of computation ---- */

static void log_array(struct tensor_log *l, const char *name, enum dtype dtype, const int32_t *array,
                      int64_t rows, int64_t width)
{
    union {
        const int32_t *read_only;
        void *data;
    } view = {array}; /* a tensor's data is not const, but nobody writes it */
    log_tensor(l, "model_inputs/", name,
               width == 1 ? tensor_1d(view.data, dtype, rows) : tensor_2d(view.data, dtype, rows, width),
               true);
}

static void log_inputs(struct tensor_log *l)
{
    const struct batch *b = l->pass.batch;
    const struct batch_layout *layout = &l->trainer->net.stage.config->model->layout;
    if (!l->options.inputs) {
        return;
    }
    log_array(l, "input_ids", DTYPE_I32, b->ids, b->n_tokens, 1);
    log_array(l, "position_ids", DTYPE_I32, b->positions, b->n_tokens, 1);
    log_array(l, "row_keys", DTYPE_I32, b->row_keys, b->n_tokens, 2);
    log_array(l, "cu_seqlens", DTYPE_I32, b->cu_seqlens, b->n_streams + 1, 1);
    for (int i = 0; i < layout->n_fields; i++) {
        const struct batch_field *f = &layout->fields[i];
        if (f->width > 0) {
            log_array(l, f->name, f->dtype, b->fields[i], batch_all_rows(b, f->rows), f->width);
        }
    }
}

/* The rows of the batch, without those that a device adds to have few sizes. */
static tensor rows_of(const struct tensor_log *l, tensor value, enum batch_rows rows)
{
    int64_t n = batch_all_rows(l->pass.batch, rows);
    return tensor_is_null(value) || value.dims[0] <= n ? value : tensor_slice(value, 0, n);
}

static void log_activation(void *context, const char *name, const char *module, enum batch_rows rows,
                           tensor value)
{
    (void)name;
    if (module != NULL) {
        log_tensor(context, "fwd_act/model.", module, rows_of(context, value, rows), false);
    }
}

static void log_activations(struct stage_tap *tap, int64_t layer)
{
    struct tensor_log *l = (struct tensor_log *)tap;
    const struct stage *s = &l->trainer->net.stage;
    if (l->options.activations && !l->backward) {
        stage_visit(s, layer, log_activation, l);
    }
}

static void log_gradient(void *context, const char *module, enum batch_rows rows, bool of_input, tensor value)
{
    log_tensor(context, of_input ? "bwd_grad_in/model." : "bwd_grad_out/model.", module,
               rows_of(context, value, rows), false);
}

static void log_gradients(struct stage_tap *tap, int64_t layer)
{
    struct tensor_log *l = (struct tensor_log *)tap;
    const struct stage *s = &l->trainer->net.stage;
    l->backward = true;
    if (l->options.gradients) {
        stage_visit_gradients(s, layer, log_gradient, l);
    }
}

/* Logs the gradients of parameters in the last pass of a step, which has added to them. */
static void log_param_gradients(struct tensor_log *l)
{
    float scale = (float)l->pass.loss_scale;
    if (!l->options.gradients || !l->pass.last) {
        return;
    }
    const struct param_table *params = &l->trainer->net.params;
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        log_tensor(l, "param_grad/", p->name, param_view(p, l->trainer->grad), false);
    }
    log_tensor(l, "", "loss_scale", tensor_1d(&scale, DTYPE_F32, 1), true);
}

/* Announces all tensors of the pass. */
static void declare(struct tensor_log *l)
{
    const struct stage *s = &l->trainer->net.stage;
    l->declaring = true;
    l->n = 0;
    l->bytes = 0;
    l->backward = false;
    log_inputs(l);
    for (int64_t i = MODEL_INPUT_LAYER; i <= s->config->model->n_layers; i++) {
        log_activations(&l->tap, i);
    }
    for (int64_t i = s->config->model->n_layers; i >= MODEL_INPUT_LAYER; i--) {
        log_gradients(&l->tap, i);
    }
    log_param_gradients(l);
    for (int i = 0; i < l->n; i++) {
        l->items[i].name = l->names[i];
    }
    l->declaring = false;
    l->backward = false;
}

/* ---- the passes ---- */

static struct status open_file(struct tensor_log *l)
{
    char path[FILE_PATH_BYTES + LONGEST_FILE_NAME];
    declare(l);
    TRY(l->status);
    void *copy = realloc(l->copy, l->copy_bytes > 0 ? l->copy_bytes : 1);
    FAIL_IF(copy == NULL, STATUS_MEMORY, "out of memory for a copy of %zu bytes", l->copy_bytes);
    l->copy = copy;
    snprintf(path, sizeof path, "%s/tensor_logger_rank_%d_step_%lld_micro_%lld.safetensors", l->directory,
             l->options.rank, (long long)l->pass.step, (long long)l->micro);
    return safetensors_writer_open(&l->writer, path, l->items, l->n);
}

/* Ends the log after a failure, with a warning. */
static void give_up(struct tensor_log *l, struct status s)
{
    if (failed(s)) {
        log_warning("%s; training continues without a log of tensors", s.message);
        l->status = s;
    }
}

static void begin(void *self, const struct trainer_pass *pass)
{
    struct tensor_log *l = self;
    l->micro = pass->first ? 0 : l->micro + 1;
    bool wanted = pass->step >= l->options.start_step && l->n_files < l->options.max_iterations;
    if (!wanted || failed(l->status) || failed(l->trainer->net.x.status)) {
        return;
    }
    l->pass = *pass;
    give_up(l, open_file(l));
    if (!failed(l->status)) {
        l->writing = true;
        l->trainer->net.stage.tap = &l->tap;
        log_inputs(l);
    }
}

/* After a failure of the device the tensors are not valid, so the file is dropped. */
static void end(void *self)
{
    struct tensor_log *l = self;
    if (!l->writing) {
        return;
    }
    l->writing = false;
    l->trainer->net.stage.tap = NULL;
    log_param_gradients(l);
    if (failed(l->trainer->net.x.status)) {
        file_writer_abandon(&l->writer.file);
        return;
    }
    l->n_files++;
    give_up(l, safetensors_writer_commit(&l->writer));
}

/* ---- open and close ---- */

static bool names_kinds(const struct tensor_log_options *o)
{
    return o->inputs || o->activations || o->gradients;
}

bool tensor_log_wants(const struct tensor_log_options *o)
{
    return names_kinds(o) && o->max_iterations > 0;
}

/* Whether the options ask for a log; says what is missing if they ask for half of one. */
static bool is_wanted(const struct tensor_log_options *o)
{
    bool kinds = names_kinds(o);
    if (kinds && o->max_iterations == 0) {
        log_info("no tensors are logged: set --tensor_logger_max_iterations to a number of micro-batches");
    } else if (!kinds && o->max_iterations > 0) {
        log_info("no tensors are logged: choose some with --log_model_inputs, --log_fwd_activations or "
                 "--log_bwd_grads");
    }
    return tensor_log_wants(o);
}

static struct status set_directory(struct tensor_log *l, const char *output_dir)
{
    const char *path = l->options.path;
    int n = path == NULL || *path == '\0'
                ? snprintf(l->directory, sizeof l->directory, "%s/tensor_logger", output_dir)
                : snprintf(l->directory, sizeof l->directory, "%s", path);
    return n < (int)sizeof l->directory
               ? status_ok()
               : status_error(STATUS_USAGE, "the path %.60s... is longer than %zu bytes", l->directory,
                              sizeof l->directory - 1);
}

/* Checks that the disk has space for the largest batch in every file, and makes the directory. */
static struct status check_room(struct tensor_log *l)
{
    uint64_t n = (uint64_t)l->options.max_iterations;
    struct stage *s = &l->trainer->net.stage;
    stage_carve_largest(s);
    l->pass = (struct trainer_pass){&s->slot->capacity, 0, true, true, 1};
    declare(l);
    TRY(l->status);
    TRY(file_check_directory_path(l->directory, LONGEST_FILE_NAME));
    TRY(file_make_directories(
        l->directory)); /* first: the check removes what it had to make, and ranks share it */
    TRY(file_check_output_directory(l->directory, LONGEST_FILE_NAME,
                                    l->bytes > UINT64_MAX / n ? UINT64_MAX : l->bytes * n));
    log_info("writing the tensors of %" PRIu64
             " micro-batches from step %lld on to %s, at most %.1f MiB each%s",
             n, (long long)l->options.start_step, l->directory, (double)l->bytes / 0x1p20,
             l->trainer->net.x.device->graphs == NULL
                 ? ""
                 : "; their work is not replayed from a recording, so they take longer");
    return status_ok();
}

struct status tensor_log_open(struct tensor_log *l, const struct tensor_log_options *o,
                              const char *output_dir, struct trainer *trainer)
{
    const struct stage *stage = &trainer->net.stage;
    *l = (struct tensor_log){.tap = {log_activations, log_gradients}, .hook = {begin, end, l}, .options = *o};
    if (!is_wanted(o)) {
        return status_ok();
    }
    FAIL_IF(stage->fp8 != FP8_NONE && stage->x->device->computes_in_fp8 && (o->activations || o->gradients),
            STATUS_USAGE,
            "--log_fwd_activations and --log_bwd_grads with --fp8 on %s: the device does not "
            "store tensors that it only multiplies; log the run without --fp8",
            stage->x->device->name);
    FAIL_IF(o->gradients && trainer_shares_gradients(trainer), STATUS_USAGE,
            "--log_bwd_grads with --zero_stage 2: no rank has all gradients of "
            "parameters; log the run with --zero_stage 1");
    l->trainer = trainer;
    trainer->pass_hook = &l->hook;
    TRY(set_directory(l, output_dir));
    return status_context(check_room(l), "--tensor_logger_path");
}

void tensor_log_close(struct tensor_log *l)
{
    if (l->trainer != NULL && !failed(l->status)) {
        log_info("wrote the tensors of %lld micro-batches in %s", (long long)l->n_files, l->directory);
    }
    if (l->trainer != NULL) {
        l->trainer->pass_hook = NULL;
    }
    free(l->items);
    free(l->names);
    free(l->copy);
    *l = (struct tensor_log){0};
}
