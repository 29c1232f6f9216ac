#include "model/megatron_write.h"

#include "io/torch_writer.h"
#include "model/checkpoint.h"
#include "model/file_tensors.h"
#include "model/megatron_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct writing {
    const struct model_dir_contents *c;
    const char *directory;
    struct file_tensors tensors;
    int64_t n_layers, n_ranks;
    void *room;    /* for a whole tensor */
    float *slices; /* for those of a file */
    struct torch_item *items;
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

/* The dims of the whole tensor in the file: of the table of words more rows, or fewer, than the model's. */
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

/* Writes what a rank has of a module. */
static struct status write_file(struct writing *w, int64_t module, int64_t rank)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct torch_writer file;
    float *at = w->slices;
    int n = 0;
    TRY(checkpoint_path(path, "%s/layer_%02" PRId64 "-model_%02" PRId64 "-model_states.pt", w->directory,
                        module, rank));
    for (int i = 0; i < w->tensors.n; i++) {
        const char *rest;
        if (module_of(w, i, &rest) == module) {
            enum megatron_cut cut = megatron_names_cut(rest);
            tensor whole = file_tensors_values(&w->tensors, i, w->c->master, w->room);
            w->items[n] = (struct torch_item){rest, slice_shape(w, i, cut)};
            w->items[n].value.data = at;
            copy_slice(at, w->items[n].value, whole, cut, rank);
            at += tensor_count(w->items[n++].value);
        }
    }
    torch_writer_init(&file);
    torch_writer_put_dict(&file, w->items, n);
    return torch_writer_commit(&file, path);
}

static struct status check_divides(const struct writing *w)
{
    for (int i = 0; i < w->tensors.n; i++) {
        const struct file_tensor *t = &w->tensors.tensors[i];
        enum megatron_cut cut = cut_of(w, i);
        tensor whole = whole_shape(w, i);
        int64_t dim = t->by_head               ? w->tensors.n_heads
                      : cut == MEGATRON_BY_ROW ? whole.dims[0]
                      : cut == MEGATRON_BY_COL ? whole.dims[1]
                                               : w->n_ranks;
        if (dim % w->n_ranks != 0) {
            return status_error(STATUS_USAGE, "--tp %" PRId64 " does not divide the %" PRId64 " %s of %s",
                                w->n_ranks, dim,
                                t->by_head               ? "heads"
                                : cut == MEGATRON_BY_ROW ? "rows"
                                                         : "columns",
                                t->name);
        }
    }
    return status_ok();
}

/* Memory for the largest file: the embeddings', or a layer's. */
static struct status allocate(struct writing *w)
{
    int64_t most = 0;
    for (int64_t module = MEGATRON_EMBEDDING; module <= MEGATRON_FIRST_LAYER; module++) {
        int64_t n = 0;
        for (int i = 0; i < w->tensors.n; i++) {
            const char *rest;
            n += module_of(w, i, &rest) == module ? tensor_count(slice_shape(w, i, cut_of(w, i))) : 0;
        }
        most = n > most ? n : most;
    }
    w->room = malloc(w->tensors.most_bytes + 1);
    w->slices = malloc((size_t)(most + 1) * sizeof *w->slices);
    w->items = calloc((size_t)w->tensors.n + 1, sizeof *w->items);
    return w->room == NULL || w->slices == NULL || w->items == NULL
               ? status_error(STATUS_MEMORY, "out of memory for the layers of %s", w->directory)
               : status_ok();
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

static struct status write_all(struct writing *w)
{
    TRY(check_divides(w));
    TRY(allocate(w));
    TRY(file_make_directories(w->directory));
    for (int64_t module = MEGATRON_EMBEDDING; module <= w->n_layers + MEGATRON_BEHIND; module++) {
        bool is_gap = module == MEGATRON_EMBEDDING + 1 || module == w->n_layers + MEGATRON_FIRST_LAYER;
        for (int64_t rank = 0; rank < w->n_ranks && !is_gap; rank++) {
            TRY(write_file(w, module, rank));
        }
    }
    return status_ok();
}

struct status megatron_write(const char *directory, const struct model_dir_contents *c)
{
    char folder[CHECKPOINT_PATH_BYTES];
    struct model_family_sizes sizes = c->family->sizes(c->config);
    struct writing w = {
        .c = c, .n_layers = sizes.n_layers, .n_ranks = c->form.n_ranks < 1 ? 1 : c->form.n_ranks};
    if (c->family->megatron == NULL) {
        return status_error(STATUS_UNAVAILABLE,
                            "kiln does not write models of the kind %s for Megatron-DeepSpeed",
                            c->family->name);
    }
    TRY(checkpoint_path(folder, "%s/global_step%" PRId64, directory, c->form.step));
    w.directory = folder;
    TRY(file_tensors_init(&w.tensors, *c->family->megatron, sizes.n_heads, c->params, DTYPE_F32));
    struct status s = write_all(&w);
    s = failed(s) ? s : write_names(directory, c->form.step);
    free(w.room);
    free(w.slices);
    free(w.items);
    file_tensors_fini(&w.tensors);
    return s;
}
