#include "model/model_dir_forms.h"

#include "io/onnx_file.h"
#include "io/torch_writer.h"
#include "model/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char ONNX_NAME[] = "model.onnx";

const char *model_dir_form_name(struct model_dir_form form)
{
    return form.kind == MODEL_DIR_SCRIPT ? "a model in PyTorch's form"
           : form.kind == MODEL_DIR_ONNX ? "a model in ONNX"
                                         : "a model";
}

struct status model_dir_written_path(char out[MODEL_DIR_PATH_BYTES], const char *path,
                                     struct model_dir_form form)
{
    switch (form.kind) {
    case MODEL_DIR_SCRIPT: return checkpoint_path(out, "%s/ckpt_%" PRId64 ".pt", path, form.step);
    case MODEL_DIR_ONNX: return checkpoint_path(out, "%s/%s", path, ONNX_NAME);
    default: return checkpoint_path(out, "%s", path);
    }
}

bool model_dir_form_has(struct model_dir_form form, const char *name)
{
    char file[64];
    if (form.kind == MODEL_DIR_ONNX) {
        return strcmp(name, ONNX_NAME) == 0 || strcmp(name, "model.onnx" ONNX_DATA_SUFFIX) == 0 ||
               strcmp(name, "config.json") == 0;
    }
    snprintf(file, sizeof file, "ckpt_%" PRId64 ".pt", form.step);
    for (size_t i = 0; model_families[i] != NULL; i++) {
        const char *config = model_families[i]->old_config;
        if (config != NULL && strcmp(name, config) == 0) {
            return true;
        }
    }
    return strcmp(name, file) == 0;
}

static struct status no_form(const struct model_dir_contents *c, const char *what)
{
    return status_error(STATUS_UNAVAILABLE, "kiln does not write models of the kind %s %s", c->family->name,
                        what);
}

/* ---- ckpt_STEP.pt ---- */

static int64_t script_rows(const struct model_dir_contents *c)
{
    int64_t rows = c->family->sizes(c->config).vocab_size, multiple = c->family->script->word_multiple;
    return (rows + multiple - 1) / multiple * multiple;
}

/* A vocabulary that is larger than its pieces already keeps its number of rows, rounded up; else the number
 * of pieces is written, which readers round up themselves. */
struct status model_dir_script_config(void **config, const struct model_dir_contents *c)
{
    *config = NULL;
    if (c->family->script == NULL || c->family->old_config == NULL) {
        return no_form(c, "for PyTorch's scripts");
    }
    *config = malloc(c->family->config_bytes);
    if (*config == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a configuration");
    }
    memcpy(*config, c->config, c->family->config_bytes);
    if (c->family->sizes(c->config).vocab_size != c->tokenizer->n) {
        c->family->set_words(*config, script_rows(c), c->tokenizer->n);
    }
    return status_ok();
}

/* A parameter with its vocabulary rounded up; the rows after it are zeros, which the flat buffer has
 * there. */
static tensor script_value(const struct model_dir_contents *c, const struct param *p)
{
    struct param rounded = *p;
    if (p->split == PARAM_BY_WORD) {
        rounded.dims[0] = script_rows(c);
    }
    return param_view(&rounded, c->master);
}

/* Whether the model has the head that a copy belongs to. */
static bool has_part_of(const struct model_dir_contents *c, const char *name)
{
    for (int i = 0; i < c->params->n; i++) {
        if (names_hf_part(c->family, c->params->params[i].name) == names_hf_part(c->family, name)) {
            return true;
        }
    }
    return false;
}

/* The tensors of a state dict. */
struct state_dict {
    struct torch_item *items; /* [n] */
    char (*names)[PARAM_NAME_BYTES];
    int n;
};

static void append(struct state_dict *d, const struct model_dir_contents *c, const char *name,
                   const struct param *p)
{
    snprintf(d->names[d->n], sizeof d->names[d->n], "%s", name);
    names_hf_rename(d->names[d->n], c->family->script->renames);
    d->items[d->n] = (struct torch_item){d->names[d->n], script_value(c, p)};
    d->n++;
}

static void fill(struct state_dict *d, const struct model_dir_contents *c)
{
    for (int i = 0; i < c->params->n; i++) {
        append(d, c, c->params->params[i].name, &c->params->params[i]);
    }
    for (const char *const(*copy)[2] = c->family->script->copies; (*copy)[0] != NULL; copy++) {
        if (has_part_of(c, (*copy)[0])) {
            append(d, c, (*copy)[0], param_table_find(c->params, (*copy)[1]));
        }
    }
}

struct status model_dir_write_script(const char *path, const struct model_dir_contents *c)
{
    size_t most = (size_t)c->params->n;
    for (const char *const(*copy)[2] = c->family->script->copies; (*copy)[0] != NULL; copy++) {
        most++;
    }
    struct state_dict d = {calloc(most, sizeof *d.items), calloc(most, sizeof *d.names), 0};
    struct status s;
    if (d.items == NULL || d.names == NULL) {
        s = status_error(STATUS_MEMORY, "out of memory for the list of tensors");
    } else {
        fill(&d, c);
        s = torch_writer_save(path, "model", d.items, d.n);
    }
    free(d.items);
    free(d.names);
    return s;
}

/* ---- ONNX ---- */

static struct status build(struct onnx_graph *g, const struct model_dir_contents *c)
{
    *g = (struct onnx_graph){0};
    if (c->family->to_onnx == NULL) {
        return no_form(c, "in ONNX");
    }
    c->family->to_onnx(g, c->config, c->task);
    CHECK(g->failed || g->n_weights == c->params->n, "the graph reads %d of %d parameters", g->n_weights,
          c->params->n);
    struct status s = onnx_graph_status(g);
    if (failed(s)) {
        onnx_graph_fini(g);
    }
    return s;
}

static tensor value_of(const void *context, const char *name)
{
    const struct model_dir_contents *c = context;
    const struct param *p = param_table_find(c->params, name);
    CHECK(p != NULL, "the graph reads %s, which is no parameter", name);
    return param_view(p, c->master);
}

struct status model_dir_write_onnx(const char *path, const struct model_dir_contents *c)
{
    struct onnx_graph g;
    TRY(build(&g, c));
    struct status s =
        onnx_file_write(path, &g, c->max_shard_bytes == 0 ? UINT64_MAX : c->max_shard_bytes, value_of, c);
    onnx_graph_fini(&g);
    return s;
}

/* ---- reading back ---- */

/* Rows after the parameter's are padding. */
static struct status compare(const struct model_dir_contents *c, const struct param *p,
                             const struct stored_tensor *read, const char *path)
{
    bool same = false;
    tensor t = param_view(p, c->master);
    struct stored_tensor own = {.name = p->name, .dtype = t.dtype, .n_dims = t.n_dims, .data = t.data};
    memcpy(own.dims, p->dims, sizeof p->dims);
    CHECK(stored_tensor_make_dense(&own, dtype_bytes(t.dtype)), "%s", p->name);
    if (read != NULL) {
        struct stored_tensor cut = *read;
        if (cut.dims[0] > own.dims[0] && p->split == PARAM_BY_WORD) {
            cut.dims[0] = own.dims[0];
            cut.bytes = own.bytes;
        }
        TRY(stored_tensor_compare(&same, &cut, &own));
    }
    return same ? status_ok()
                : status_error(STATUS_IO,
                               "%s was not written as it was read: %s %s; check the disk, and write it again",
                               path, p->name, read == NULL ? "is missing" : "differs");
}

static struct status verify_onnx(const char *path, const struct model_dir_contents *c)
{
    struct onnx_graph g;
    struct onnx_file f = {0};
    TRY(build(&g, c));
    struct status s = onnx_file_open(&f, path);
    for (int i = 0; i < g.n_weights && !failed(s); i++) {
        const struct onnx_weight *w = &g.weights[i];
        const struct stored_tensor *read = stored_tensor_find(f.tensors, f.n, w->name);
        struct stored_tensor turned;
        if (read != NULL && w->transposed && read->n_dims == 2) {
            turned = stored_tensor_transpose(read);
            read = &turned;
        }
        s = compare(c, param_table_find(c->params, w->name), read, path);
    }
    onnx_file_close(&f);
    onnx_graph_fini(&g);
    return s;
}

struct status model_dir_verify(const char *path, const struct model_dir_contents *c)
{
    char written[MODEL_DIR_PATH_BYTES];
    struct model_dir m;
    TRY(model_dir_written_path(written, path, c->form));
    if (c->form.kind == MODEL_DIR_ONNX) {
        return verify_onnx(written, c);
    }
    TRY(model_dir_open(&m, written));
    struct status s = status_ok();
    for (int i = 0; i < c->params->n && !failed(s); i++) {
        const struct param *p = &c->params->params[i];
        const struct model_tensor *t = model_files_find(&m.files, p->name, false);
        s = compare(c, p, t == NULL ? NULL : &t->stored, written);
    }
    model_dir_close(&m);
    return s;
}
