#include "model/model_dir_forms.h"

#include "io/gguf_types.h"
#include "model/checkpoint.h"
#include "model/foreign_moments.h"
#include "model/model_progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char GGUF_NAME[] = "model.gguf";

const char *model_dir_form_name(struct model_dir_form form)
{
    return form.kind == MODEL_DIR_SCRIPT      ? "a model in PyTorch's form"
           : form.kind == MODEL_DIR_DEEPSPEED ? "a checkpoint of DeepSpeed"
           : form.kind == MODEL_DIR_GGUF      ? "a model in GGUF"
           : form.kind == MODEL_DIR_MEGATRON  ? "a checkpoint of Megatron-DeepSpeed"
           : form.kind == MODEL_DIR_UNIVERSAL ? "a universal checkpoint of Megatron-DeepSpeed"
                                              : "a model";
}

struct status model_dir_written_path(char out[MODEL_DIR_PATH_BYTES], const char *path,
                                     struct model_dir_form form)
{
    switch (form.kind) {
    case MODEL_DIR_SCRIPT: return checkpoint_path(out, "%s/ckpt_%" PRId64 ".pt", path, form.step);
    case MODEL_DIR_GGUF: return checkpoint_path(out, "%s/%s", path, GGUF_NAME);
    default: return checkpoint_path(out, "%s", path);
    }
}

bool model_dir_form_streams(struct model_dir_form form)
{
    return form.kind != MODEL_DIR_SCRIPT && form.kind != MODEL_DIR_DEEPSPEED &&
           form.kind != MODEL_DIR_UNIVERSAL;
}

bool model_dir_form_drops_rows(struct model_dir_form form)
{
    return form.kind == MODEL_DIR_GGUF;
}

/* The files of weights next to config.json, in the forms that keep that name. */
static bool has_beside_config(struct model_dir_form form, const char *name)
{
    char folder[64];
    switch (form.kind) {
    case MODEL_DIR_GGUF: return strcmp(name, GGUF_NAME) == 0;
    case MODEL_DIR_MEGATRON:
        snprintf(folder, sizeof folder, "global_step%" PRId64, form.step);
        return strcmp(name, folder) == 0 || strcmp(name, "latest") == 0 ||
               strcmp(name, "latest_checkpointed_iteration.txt") == 0;
    case MODEL_DIR_UNIVERSAL:
        snprintf(folder, sizeof folder, "global_step%" PRId64 "_universal", form.step);
        return strcmp(name, folder) == 0 || strcmp(name, "latest_universal") == 0;
    default: return false;
    }
}

bool model_dir_form_has(struct model_dir_form form, const char *name)
{
    char file[64];
    if (form.kind != MODEL_DIR_SCRIPT && form.kind != MODEL_DIR_DEEPSPEED) {
        return has_beside_config(form, name) || strcmp(name, "config.json") == 0;
    }
    bool is_folder = form.kind == MODEL_DIR_DEEPSPEED;
    snprintf(file, sizeof file, is_folder ? "%" PRId64 : "ckpt_%" PRId64 ".pt", form.step);
    for (size_t i = 0; model_families[i] != NULL; i++) {
        const char *config = model_families[i]->old_config;
        if (config != NULL && strcmp(name, config) == 0) {
            return true;
        }
    }
    return strcmp(name, file) == 0 || (is_folder && strcmp(name, "latest") == 0);
}

struct status model_dir_padded_config(void **config, const struct model_dir_contents *c, int64_t rows)
{
    *config = malloc(c->family->config_bytes);
    FAIL_IF(*config == NULL, STATUS_MEMORY, "out of memory for a configuration");
    memcpy(*config, c->config, c->family->config_bytes);
    c->family->set_words(*config, rows, c->tokenizer->n);
    return status_ok();
}

/* ---- reading back ---- */

static bool is_quantized(const struct stored_tensor *t)
{
    return strcmp(t->dtype_label, gguf_type_name(GGUF_Q8_0)) == 0;
}

/* Leaves the rows that both have: those after them are no words. */
static void cut_rows(struct stored_tensor *a, struct stored_tensor *b)
{
    struct stored_tensor *longer = a->dims[0] > b->dims[0] ? a : b, *shorter = longer == a ? b : a;
    longer->bytes =
        longer->dims[0] > 0 ? longer->bytes / (size_t)longer->dims[0] * (size_t)shorter->dims[0] : 0;
    longer->dims[0] = shorter->dims[0];
}

/* Compares fp32 values with quantized ones, row by row, so that no copy of a complete tensor is needed. */
static struct status compare_quantized(bool *same, const float *own, const struct stored_tensor *read,
                                       int64_t n_all, int64_t n)
{
    float *room = malloc(3 * (size_t)n * sizeof *room + 1); /* blocks are smaller */
    struct status s =
        room == NULL ? status_error(STATUS_MEMORY, "out of memory for %s", read->name) : status_ok();
    *same = true;
    for (int64_t at = 0; at < n_all && *same && !failed(s); at += n) {
        gguf_encode(GGUF_Q8_0, room + 2 * n, own + at, n);
        gguf_decode_q8(room, room + 2 * n, n);
        s = stored_tensor_read_elements(read, at, tensor_1d(room + n, DTYPE_F32, n));
        *same = memcmp(room, room + n, (size_t)n * sizeof *room) == 0;
    }
    free(room);
    return s;
}

/* Whether what was read has the shape and, rounded to its type, the values of what is in memory. */
static struct status compare_values(bool *same, const struct stored_tensor *own,
                                    const struct stored_tensor *read)
{
    int64_t at = -1, n = (int64_t)(own->bytes / dtype_bytes(own->dtype)),
            cols = own->n_dims > 1 ? own->dims[1] : n;
    *same = own->n_dims == read->n_dims && read->unreadable == NULL &&
            memcmp(own->dims, read->dims, (size_t)own->n_dims * sizeof *own->dims) == 0;
    if (*same && is_quantized(read) && cols % GGUF_Q8_ITEMS == 0) {
        return compare_quantized(same, (const float *)own->data, read, n, cols);
    }
    TRY(*same ? stored_tensor_find_difference(&at, own, read) : status_ok());
    *same = *same && at < 0;
    return status_ok();
}

/* Compares what was read with a parameter's values, rounded as the file's are.  Rows after the parameter's
 * are padding. */
static struct status compare(tensor t, const struct param *p, const struct stored_tensor *read,
                             const char *path)
{
    bool same = false;
    struct stored_tensor own = {.name = p->name, .dtype = t.dtype, .n_dims = t.n_dims, .data = t.data};
    memcpy(own.dims, p->dims, sizeof p->dims);
    CHECK(stored_tensor_make_dense(&own, dtype_bytes(t.dtype)), "%s", p->name);
    if (read != NULL) {
        struct stored_tensor cut = *read;
        if (p->split == PARAM_BY_WORD) {
            cut_rows(&cut, &own);
        }
        TRY(compare_values(&same, &own, &cut));
    }
    return same ? status_ok()
                : status_error(STATUS_IO,
                               "%s was not written as it was read: %s %s; check the disk, and write it again",
                               path, p->name, read == NULL ? "is missing" : "differs");
}

/* The moments, and where there are some the weights of the optimizer, as a run that resumes reads them. */
static struct status verify_progress(const struct model_dir *dir, const struct model_dir_contents *c,
                                     const char *path)
{
    struct foreign_moments moments;
    TRY(foreign_moments_init(&moments, dir));
    struct status s = status_ok();
    int64_t wanted = c->progress->step - (c->form.kind == MODEL_DIR_DEEPSPEED ? c->progress->n_skipped : 0);
    if (!moments.has || moments.n_steps != wanted) {
        s = status_error(STATUS_IO,
                         "%s was not written as it was read: its optimizer counts %lld steps, not %lld", path,
                         (long long)moments.n_steps, (long long)wanted);
    }
    const tensor kept[PARAM_N_KEPT] = {c->master, c->progress->exp_avg, c->progress->exp_avg_sq};
    for (int i = 0; i < c->params->n && !failed(s); i++) {
        const struct param *p = &c->params->params[i];
        const struct foreign_moment *read = foreign_moments_find(&moments, p->name);
        for (int k = 0; k < PARAM_N_KEPT && !failed(s); k++) {
            const struct stored_tensor *t = read == NULL ? NULL : read->kept[k];
            s = k == PARAM_WEIGHT && t == NULL ? s : compare(param_view(p, kept[k]), p, t, path);
        }
    }
    foreign_moments_fini(&moments);
    return s;
}

/* Compares a parameter's values with those of a tensor in the files of `m`, or one like it. */
static struct status compare_tensor(const struct model_dir *m, const struct param *p, tensor values,
                                    const struct model_tensor *t, const char *written)
{
    struct stored_tensor read;
    void *list = NULL;
    struct status s = t == NULL ? status_error(STATUS_DATA, "there is none")
                                : model_tensor_view(&read, &list, t, m->family->sizes(m->config).heads);
    s = s.code == STATUS_MEMORY ? s : compare(values, p, failed(s) ? NULL : &read, written);
    free(list);
    return s;
}

/* The moments of a universal checkpoint. */
static struct status verify_universal(const struct model_dir *m, const struct model_dir_contents *c,
                                      const char *path)
{
    const tensor kept[PARAM_N_KEPT] = {c->master, c->progress->exp_avg, c->progress->exp_avg_sq};
    for (int i = 0; i < c->params->n; i++) {
        const struct param *p = &c->params->params[i];
        const struct model_tensor *t = model_files_find(&m->files, p->name, false);
        for (int k = PARAM_EXP_AVG; k < PARAM_N_KEPT; k++) {
            struct megatron_moment moment;
            int at = t == NULL ? -1 : megatron_files_find(m->files.megatron, t->stored.name);
            CHECK(at >= 0, "%s was written without %s", path, p->name);
            TRY(megatron_files_moment(m->files.megatron, at, (enum param_kept)k, &moment));
            struct model_tensor like = model_tensor_like(t, &moment.tensor);
            struct status s = compare_tensor(m, p, param_view(p, kept[k]), &like, path);
            megatron_moment_close(&moment);
            TRY(s);
        }
    }
    return status_ok();
}

struct status model_dir_verify(const char *path, const struct model_dir_contents *c)
{
    char written[MODEL_DIR_PATH_BYTES];
    struct model_dir m;
    TRY(model_dir_written_path(written, path, c->form));
    TRY(model_dir_open(&m, written));
    struct status s = status_ok();
    struct weight_source weights = weight_source_either(c->weights, &c->master);
    for (int i = 0; i < c->params->n && !failed(s); i++) {
        const struct param *p = &c->params->params[i];
        tensor values;
        s = weights.read(weights.self, p, &values);
        s = failed(s) ? s
                      : compare_tensor(&m, p, values, model_files_find(&m.files, p->name, false), written);
    }
    if (!failed(s) && c->progress != NULL) {
        s = c->form.kind == MODEL_DIR_UNIVERSAL ? verify_universal(&m, c, written)
                                                : verify_progress(&m, c, written);
    }
    model_dir_close(&m);
    return s;
}
