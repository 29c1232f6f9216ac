/* megatron_write: the weights of a decoder as Megatron-DeepSpeed's layer files, in fp32, for a number of
 * ranks of tensor parallelism and of stages: global_stepN/layer_NN-model_TT-model_states.pt, and the files
 * that name the folder.  mp_rank_KK_model_states.pt say of each rank what shapes it has, and which model and
 * step it is of; the state of an optimizer is not written.
 *
 * Or, of a run, a universal checkpoint: global_stepN_universal/zero/NAME/{fp32,exp_avg,exp_avg_sq}.pt of
 * complete tensors, the mp_rank file of one rank, and latest_universal, which names the folder. */
#include "io/pickle_writer.h"
#include "io/torch_writer.h"
#include "io/zero_folder.h"
#include "model/checkpoint.h"
#include "model/file_tensors.h"
#include "model/megatron_files.h"
#include "model/megatron_names.h"
#include "model/model_dir_forms.h"
#include "model/model_progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct writing {
    const struct model_dir_contents *c;
    const char *directory;
    struct weight_source weights;
    struct file_tensors tensors;
    int64_t n_layers, n_ranks, n_stages;
    struct torch_item *items; /* tensors of a file */
    int *places;              /* numbers of the items among `tensors` */
    int64_t rank;             /* rank of the file */
    float *slice;             /* owned; slice of the tensor that was written last */
};

int64_t megatron_write_rows(const struct model_dir_contents *c)
{
    int64_t multiple = MEGATRON_WORD_MULTIPLE * (c->form.n_ranks < 1 ? 1 : c->form.n_ranks);
    return (c->tokenizer->n + multiple - 1) / multiple * multiple;
}

static int64_t module_of(const struct writing *w, int i, const char **rest)
{
    return megatron_names_split(w->tensors.tensors[i].name, rest, w->n_layers);
}

/* The dims of the complete tensor in the file: the table of words has more rows, or fewer, than the
 * model's. */
static tensor whole_shape(const struct writing *w, int i)
{
    const struct file_tensor *t = &w->tensors.tensors[i];
    tensor shape = t->shape;
    if (t->parts[0]->split == PARAM_BY_WORD) {
        shape.dims[0] = megatron_write_rows(w->c);
    }
    return shape;
}

/* The shape of a rank's part. */
static tensor slice_shape(const struct writing *w, int i, enum megatron_cut cut)
{
    tensor t = whole_shape(w, i);
    int64_t rows = t.dims[0] / (cut == MEGATRON_BY_ROW ? w->n_ranks : 1);
    return t.n_dims == 1
               ? tensor_1d(NULL, DTYPE_F32, rows)
               : tensor_2d(NULL, DTYPE_F32, rows, t.dims[1] / (cut == MEGATRON_BY_COL ? w->n_ranks : 1));
}

static enum megatron_cut cut_of(const struct writing *w, int i)
{
    const char *rest;
    (void)module_of(w, i, &rest);
    return megatron_names_cut(rest);
}

static void copy_slice(float *to, tensor slice, tensor whole, enum megatron_cut cut, int64_t rank)
{
    int64_t cols = whole.n_dims == 1 ? 1 : whole.dims[1], n = slice.n_dims == 1 ? 1 : slice.dims[1];
    int64_t first_row = cut == MEGATRON_BY_ROW ? rank * slice.dims[0] : 0;
    int64_t first_col = cut == MEGATRON_BY_COL ? rank * n : 0;
    for (int64_t r = 0; r < slice.dims[0]; r++) {
        int64_t row = first_row + r < whole.dims[0] ? first_row + r : whole.dims[0] - 1;
        memcpy(to + r * n, (const float *)whole.data + row * cols + first_col, (size_t)n * sizeof *to);
    }
}

/* A rank's part of a tensor of the file. */
static struct status slice_of(void *context, int number, tensor *values)
{
    struct writing *w = context;
    int i = w->places[number];
    tensor whole;
    *values = w->items[number].value;
    free(w->slice);
    w->slice = malloc(tensor_bytes(*values) + 1);
    values->data = w->slice;
    FAIL_IF(w->slice == NULL, STATUS_MEMORY, "out of memory for a part of %s", w->tensors.tensors[i].name);
    TRY(file_tensors_read(&w->tensors, i, &w->weights, &whole));
    copy_slice(w->slice, *values, whole, cut_of(w, i), w->rank);
    return status_ok();
}

/* Writes what a rank has of a module. */
static struct status write_file(struct writing *w, int64_t module, int64_t rank)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct torch_writer file;
    int n = 0;
    TRY(checkpoint_path(path, "%s/layer_%02" PRId64 "-model_%02" PRId64 "-model_states.pt", w->directory,
                        module, rank));
    for (int i = 0; i < w->tensors.n; i++) {
        const char *rest;
        if (module_of(w, i, &rest) == module) {
            w->items[n] = (struct torch_item){rest, slice_shape(w, i, megatron_names_cut(rest))};
            w->places[n++] = i;
        }
    }
    w->rank = rank;
    torch_writer_init(&file);
    torch_writer_put_dict(&file, w->items, n);
    return torch_writer_commit_from(&file, path, slice_of, w);
}

static struct status check_divides(const struct writing *w)
{
    for (int i = 0; i < w->tensors.n; i++) {
        const struct file_tensor *t = &w->tensors.tensors[i];
        enum megatron_cut cut = cut_of(w, i);
        tensor whole = whole_shape(w, i);
        int64_t dim = t->by_head               ? w->tensors.heads.n
                      : cut == MEGATRON_BY_ROW ? whole.dims[0]
                      : cut == MEGATRON_BY_COL ? whole.dims[1]
                                               : w->n_ranks;
        FAIL_IF(dim % w->n_ranks != 0, STATUS_USAGE,
                "--tp %" PRId64 " does not divide the %" PRId64 " %s of %s", w->n_ranks, dim,
                t->by_head               ? "heads"
                : cut == MEGATRON_BY_ROW ? "rows"
                                         : "columns",
                t->name);
    }
    return status_ok();
}

static struct status write_names(const char *directory, int64_t step)
{
    char path[CHECKPOINT_PATH_BYTES], text[64];
    int n = snprintf(text, sizeof text, "global_step%" PRId64, step);
    TRY(checkpoint_path(path, "%s/latest", directory));
    TRY(file_write_atomic(path, text, (size_t)n));
    n = snprintf(text, sizeof text, "%" PRId64, step);
    TRY(checkpoint_path(path, "%s/latest_checkpointed_iteration.txt", directory));
    return file_write_atomic(path, text, (size_t)n);
}

/* ---- what a rank writes of the run ---- */

/* The stage that has a module: layers are cut evenly, embeddings come first and the last norm last. */
static int64_t stage_of(const struct writing *w, int64_t module)
{
    int64_t layer = module - MEGATRON_FIRST_LAYER;
    return layer < 0 ? 0 : layer >= w->n_layers ? w->n_stages - 1 : layer / (w->n_layers / w->n_stages);
}

/* The shapes of what a stage has; its last one has the embeddings too, which the loss reads. */
static void put_shapes(struct buf *b, const struct writing *w, int64_t stage)
{
    pickle_put_key_list_begin(b, "param_shapes");
    pickle_put_ordered_dict(b);
    pickle_put(b, MARK);
    for (int last = 0; last < 2; last++) {
        for (int i = 0; i < w->tensors.n; i++) {
            const char *rest;
            char name[PARAM_NAME_BYTES];
            int64_t module = module_of(w, i, &rest);
            bool is_copy = module == MEGATRON_EMBEDDING && stage > 0 && stage == w->n_stages - 1;
            if (last == 0 ? stage_of(w, module) == stage : is_copy) {
                CHECK(megatron_names_state(name, w->tensors.tensors[i].name, w->n_layers), "%s", rest);
                pickle_put_text(b, name);
                torch_writer_put_size(b, slice_shape(w, i, cut_of(w, i)));
            }
        }
    }
    pickle_put(b, SETITEMS);
    pickle_put(b, APPENDS);
}

/* Dim 0 of the complete tensor with this end of a name; 0: there is none. */
static int64_t rows_of(const struct writing *w, const char *end)
{
    for (int i = 0; i < w->tensors.n; i++) {
        const char *name = w->tensors.tensors[i].name;
        size_t n = strlen(name), n_end = strlen(end);
        if (n >= n_end && strcmp(name + n - n_end, end) == 0) {
            return whole_shape(w, i).dims[0];
        }
    }
    return 0;
}

/* Puts the "args" that Megatron's loader compares with its own flags, and those that it takes over. */
static void put_args(struct buf *b, const struct writing *w)
{
    struct model_family_sizes sizes = w->c->family->sizes(w->c->config);
    int64_t hidden = rows_of(w, "input_layernorm.bias"), positions = rows_of(w, "position_embeddings.weight");
    pickle_put_text(b, "args");
    pickle_put_global(b, "argparse", "Namespace");
    pickle_put(b, MARK);
    pickle_put(b, TUPLE);
    pickle_put(b, REDUCE);
    pickle_put_dict_begin(b);
    pickle_put_key_int(b, "num_layers", w->n_layers);
    pickle_put_key_int(b, "hidden_size", hidden);
    pickle_put_key_int(b, "num_attention_heads", sizes.heads.n);
    pickle_put_key_int(b, "ffn_hidden_size", rows_of(w, "dense_h_to_4h.bias"));
    pickle_put_key_int(b, "kv_channels", hidden / sizes.heads.n);
    pickle_put_key_int(b, "max_position_embeddings", positions > 0 ? positions : sizes.max_length);
    pickle_put_key_int(b, "seq_length", positions > 0 ? positions : sizes.max_length);
    pickle_put_key_int(b, "padded_vocab_size", megatron_write_rows(w->c));
    pickle_put_key_int(b, "make_vocab_size_divisible_by", MEGATRON_WORD_MULTIPLE);
    pickle_put_key_int(b, "tensor_model_parallel_size", w->n_ranks);
    pickle_put_key_int(b, "pipeline_model_parallel_size", w->n_stages);
    pickle_put_key_int(b, "iteration", w->c->form.step);
    pickle_put_key_int(b, "consumed_train_samples", 0);
    pickle_put_key_int(b, "consumed_valid_samples", 0);
    pickle_put(b, SETITEMS);
    pickle_put(b, BUILD);
}

/* mp_rank_KK_model_states.pt, as PipelineEngine of DeepSpeed saves and loads it: weights are in the layer
 * files. */
static struct status write_states(const struct writing *w, int64_t stage, int64_t rank)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct torch_writer file;
    TRY(checkpoint_path(path, "%s/mp_rank_%02" PRId64 "_model_states.pt", w->directory,
                        stage * w->n_ranks + rank));
    torch_writer_init(&file);
    struct buf *b = &file.pickle;
    pickle_put_dict_begin(b);
    pickle_put_key_none(b, "module");
    pickle_put_key_list(b, "buffer_names");
    pickle_put_key_none(b, "optimizer");
    put_shapes(b, w, stage);
    pickle_put_key_none(b, "lr_scheduler");
    pickle_put_key_list(b, "sparse_tensor_module_names");
    pickle_put_key_list(b, "csr_tensor_module_names");
    pickle_put_key_int(b, "skipped_steps", w->c->progress == NULL ? 0 : w->c->progress->n_skipped);
    pickle_put_key_int(b, "global_steps", w->c->form.step);
    pickle_put_key_int(b, "global_samples", 0);
    pickle_put_key_int(b, "dp_world_size", 1);
    pickle_put_key_int(b, "mp_world_size", w->n_ranks * w->n_stages);
    pickle_put_key_dict_begin(b, "ds_config");
    pickle_put(b, SETITEMS);
    pickle_put_key_text(b, "ds_version", ZERO_FOLDER_VERSION);
    put_args(b, w);
    pickle_put_key_real(b, "checkpoint_version", 3);
    pickle_put_key_int(b, "iteration", w->c->form.step);
    pickle_put_key_int(b, "tokens", 0);
    pickle_put(b, SETITEMS);
    return torch_writer_commit(&file, path);
}

static struct status write_all(struct writing *w)
{
    TRY(check_divides(w));
    TRY(w->n_layers % w->n_stages == 0
            ? status_ok()
            : status_error(STATUS_USAGE, "--pp %" PRId64 " does not divide the %" PRId64 " layers",
                           w->n_stages, w->n_layers));
    w->items = calloc((size_t)w->tensors.n + 1, sizeof *w->items);
    w->places = calloc((size_t)w->tensors.n + 1, sizeof *w->places);
    TRY(w->items != NULL && w->places != NULL
            ? status_ok()
            : status_error(STATUS_MEMORY, "out of memory for the layers of %s", w->directory));
    TRY(file_make_directories(w->directory));
    for (int64_t module = MEGATRON_EMBEDDING; module <= w->n_layers + MEGATRON_BEHIND; module++) {
        bool is_gap = module == MEGATRON_EMBEDDING + 1 || module == w->n_layers + MEGATRON_FIRST_LAYER;
        for (int64_t rank = 0; rank < w->n_ranks && !is_gap; rank++) {
            TRY(write_file(w, module, rank));
        }
    }
    for (int64_t i = 0; i < w->n_stages * w->n_ranks; i++) {
        TRY(write_states(w, i / w->n_ranks, i % w->n_ranks));
    }
    return status_ok();
}

/* ---- a universal checkpoint ---- */

/* Writes a tensor's weight, or one of its moments. */
static struct status write_kept(struct writing *w, int i, const char *folder, const char *kept,
                                const struct weight_source *from)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct torch_writer file;
    tensor values;
    enum megatron_cut cut = cut_of(w, i);
    TRY(checkpoint_path(path, "%s/%s.pt", folder, kept));
    TRY(file_tensors_read(&w->tensors, i, from, &values));
    torch_writer_init(&file);
    pickle_put_dict_begin(&file.pickle);
    pickle_put_text(&file.pickle, "param");
    torch_writer_put_tensor(&file, values);
    if (w->tensors.tensors[i].parts[0]->split == PARAM_BY_WORD) { /* new rows repeat the last */
        tensor last = tensor_slice(values, values.dims[0] - 1, 1);
        pickle_put_text(&file.pickle, MEGATRON_PADDING);
        torch_writer_put_tensor(&file, tensor_1d(last.data, DTYPE_F32, values.dims[1]));
    }
    if (cut != MEGATRON_COPIED) {
        pickle_put_key_int(&file.pickle, "cat_dim", cut == MEGATRON_BY_COL);
    }
    pickle_put(&file.pickle, SETITEMS);
    return torch_writer_commit(&file, path);
}

static struct status write_parameter(struct writing *w, int i)
{
    const struct model_progress *p = w->c->progress;
    const struct {
        const char *kept;
        struct weight_source from;
    } all[] = {{"fp32", w->weights},
               {"exp_avg", weight_source_of(&p->exp_avg)},
               {"exp_avg_sq", weight_source_of(&p->exp_avg_sq)}};
    char folder[CHECKPOINT_PATH_BYTES], name[PARAM_NAME_BYTES];
    CHECK(megatron_names_state(name, w->tensors.tensors[i].name, w->n_layers), "tensor %d", i);
    TRY(checkpoint_path(folder, "%s/" MEGATRON_UNIVERSAL "/%s", w->directory, name));
    TRY(file_make_directories(folder));
    for (int k = 0; k < 3; k++) {
        TRY(write_kept(w, i, folder, all[k].kept, &all[k].from));
    }
    return status_ok();
}

static struct status write_universal(struct writing *w)
{
    CHECK(w->c->progress != NULL, "a universal checkpoint without the state of a run");
    for (int i = 0; i < w->tensors.n; i++) {
        TRY(write_parameter(w, i));
    }
    return write_states(w, 0, 0);
}

/* ---- both ---- */

static struct status write_form(struct writing *w, const char *directory)
{
    char path[CHECKPOINT_PATH_BYTES], name[64];
    int64_t step = w->c->form.step;
    if (w->c->form.kind == MODEL_DIR_MEGATRON) {
        TRY(write_all(w));
        return write_names(directory, step);
    }
    TRY(write_universal(w));
    int n = snprintf(name, sizeof name, "global_step%" PRId64 "_universal", step);
    TRY(checkpoint_path(path, "%s/latest_universal", directory));
    return file_write_atomic(path, name, (size_t)n);
}

struct status megatron_write(const char *directory, const struct model_dir_contents *c)
{
    char folder[CHECKPOINT_PATH_BYTES];
    struct model_family_sizes sizes = c->family->sizes(c->config);
    struct writing w = {.c = c,
                        .weights = weight_source_either(c->weights, &c->master),
                        .n_layers = sizes.n_layers,
                        .n_ranks = c->form.n_ranks < 1 ? 1 : c->form.n_ranks,
                        .n_stages = c->form.n_stages < 1 ? 1 : c->form.n_stages};
    FAIL_IF(c->family->megatron == NULL, STATUS_UNAVAILABLE,
            "kiln does not write models of the kind %s for Megatron-DeepSpeed", c->family->name);
    TRY(checkpoint_path(folder, "%s/global_step%" PRId64 "%s", directory, c->form.step,
                        c->form.kind == MODEL_DIR_MEGATRON ? "" : "_universal"));
    w.directory = folder;
    TRY(file_tensors_init(&w.tensors, *c->family->megatron, sizes.heads, c->params, DTYPE_F32));
    struct status s = write_form(&w, directory);
    free(w.slice);
    free(w.places);
    free(w.items);
    file_tensors_fini(&w.tensors);
    return s;
}
