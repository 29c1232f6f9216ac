/* model_gguf: writes a model as one GGUF file: what its family says of it, its tokenizer, and its weights in
 * one of four types.  Vectors are fp32 in all of them. */
#include "core/log.h"
#include "io/gguf_writer.h"
#include "model/file_tensors.h"
#include "model/gguf_config.h"
#include "model/model_dir_forms.h"
#include "text/gguf_tokens.h"

#include <stdlib.h>
#include <string.h>

/* ---- the weights ---- */

static uint32_t file_type(enum model_dir_type type)
{
    static const uint32_t types[] = {
        [MODEL_DIR_F32] = 0, [MODEL_DIR_F16] = 1, [MODEL_DIR_Q8_0] = 7, [MODEL_DIR_BF16] = 32};
    return types[type];
}

static bool is_in(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* The type of a tensor's elements; *falls_back: Q8_0 has no blocks for its rows. */
static enum gguf_type element_type(const struct model_dir_contents *c, const struct file_tensor *t,
                                   bool *falls_back)
{
    static const enum gguf_type types[] = {[MODEL_DIR_F32] = GGUF_F32,
                                           [MODEL_DIR_F16] = GGUF_F16,
                                           [MODEL_DIR_Q8_0] = GGUF_Q8_0,
                                           [MODEL_DIR_BF16] = GGUF_BF16};
    *falls_back = false;
    if (t->shape.n_dims == 1 || is_in(c->family->gguf->in_f32, t->name)) {
        return GGUF_F32;
    }
    *falls_back = c->form.type == MODEL_DIR_Q8_0 && t->shape.dims[1] % GGUF_Q8_ITEMS != 0;
    return *falls_back ? GGUF_F16 : types[c->form.type];
}

static void describe(struct gguf_item *items, const struct file_tensors *tensors,
                     const struct model_dir_contents *c)
{
    int n_back = 0;
    for (int i = 0; i < tensors->n; i++) {
        const struct file_tensor *t = &tensors->tensors[i];
        bool falls_back;
        items[i] = (struct gguf_item){t->name, t->shape, element_type(c, t, &falls_back)};
        n_back += falls_back;
    }
    if (n_back > 0) {
        log_warning("%d matrices are written as F16: their rows are not whole blocks of %d elements, which "
                    "Q8_0 needs",
                    n_back, GGUF_Q8_ITEMS);
    }
}

/* Columns of a head, at most, and so divisors of its angles. */
enum { MOST_DIVISORS = 4096 };

/* The tensor of divisors behind the others, where the model has one. */
struct divisors {
    int64_t n;
    float values[MOST_DIVISORS];
};

static void find_divisors(struct divisors *d, const struct model_dir_contents *c)
{
    const struct model_family_gguf *of = c->family->gguf;
    d->n = of->divisors == NULL ? 0 : of->divisors(d->values, MOST_DIVISORS, c->config);
}

static tensor divisors_view(struct divisors *d)
{
    return tensor_1d(d->values, DTYPE_F32, d->n);
}

static struct status put_all(struct gguf_writer *w, const char *path, struct file_tensors *tensors,
                             const struct model_dir_contents *c)
{
    struct weight_source weights = weight_source_either(c->weights, &c->master);
    struct divisors divisors;
    struct gguf_item *items = calloc((size_t)tensors->n + 1, sizeof *items);
    struct status s = items == NULL ? status_error(STATUS_MEMORY, "out of memory for the tensors of %s", path)
                                    : status_ok();
    if (!failed(s)) {
        describe(items, tensors, c);
        find_divisors(&divisors, c);
        items[tensors->n] = (struct gguf_item){"rope_freqs.weight", divisors_view(&divisors), GGUF_F32};
        s = gguf_writer_open(w, path, items, tensors->n + (divisors.n > 0));
    }
    for (int i = 0; i < tensors->n && !failed(s) && !failed(w->file.status); i++) {
        tensor values;
        struct status read = file_tensors_read(tensors, i, &weights, &values);
        if (failed(read)) {
            w->file.status = read;
        } else {
            gguf_writer_put(w, values);
        }
    }
    if (!failed(s) && divisors.n > 0 && !failed(w->file.status)) {
        gguf_writer_put(w, divisors_view(&divisors));
    }
    s = failed(s) ? s : gguf_writer_commit(w);
    free(items);
    return s;
}

struct status model_gguf_write(const char *path, const char *name, const struct model_dir_contents *c)
{
    struct gguf_writer w;
    struct file_tensors tensors;
    const struct model_family_gguf *of = c->family->gguf;
    FAIL_IF(of == NULL, STATUS_UNAVAILABLE, "kiln does not write models of the kind %s in GGUF",
            c->family->name);
    TRY(file_tensors_init(&tensors, *of->layout, c->family->sizes(c->config).heads, c->params, DTYPE_F32));
    gguf_writer_init(&w);
    gguf_put_text(&w, "general.architecture", of->architecture);
    gguf_put_text(&w, "general.name", name);
    gguf_put_u32(&w, "general.file_type", file_type(c->form.type));
    struct status s = gguf_config_put(&w, c->family, c->config);
    s = failed(s) ? s : gguf_tokens_put(&w, c->tokenizer);
    if (failed(s)) {
        gguf_writer_discard(&w);
    } else {
        s = put_all(&w, path, &tensors, c);
    }
    file_tensors_fini(&tensors);
    return s;
}
