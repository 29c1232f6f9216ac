#include "model/file_tensors.h"

#include "model/names_hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The place of `end` in the name if the name ends so, or NULL. */
static const char *end_of(const char *name, const char *end)
{
    size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0 ? name + n - n_end : NULL;
}

/* The name with the part from `at` on replaced. */
static void replace(char out[PARAM_NAME_BYTES], const char *name, const char *at, const char *end)
{
    int n = snprintf(out, PARAM_NAME_BYTES, "%.*s%s", (int)(at - name), name, end);
    CHECK(n < PARAM_NAME_BYTES, "the name of %s in files is too long", name);
}

/* Whether p is a part of a join; the first part adds the complete tensor to the list. */
static bool add_joined(struct file_tensors *f, const struct model_family_join *j,
                       const struct param_table *params, const struct param *p)
{
    for (; j != NULL && j->whole != NULL; j++) {
        int n = model_family_join_parts(j);
        for (int k = 0; k < n; k++) {
            const char *at = end_of(p->name, j->parts[k]);
            if (at == NULL) {
                continue;
            }
            struct file_tensor *t = &f->tensors[f->n];
            if (k > 0) {
                return true;
            }
            *t = (struct file_tensor){.n_parts = n, .transposed = j->transposed, .by_head = j->by_head};
            replace(t->name, p->name, at, j->whole);
            for (int part = 0; part < n; part++) {
                char name[PARAM_NAME_BYTES];
                replace(name, p->name, at, j->parts[part]);
                t->parts[part] = param_table_find(params, name);
                CHECK(t->parts[part] != NULL, "%s is no parameter", name);
            }
            f->n++;
            return true;
        }
    }
    return false;
}

static void add_param(struct file_tensors *f, const struct param *p)
{
    struct file_tensor *t = &f->tensors[f->n++];
    *t = (struct file_tensor){.parts = {p}, .n_parts = 1};
    memcpy(t->name, p->name, sizeof t->name);
}

/* The rows of the parts before one, or of all n_parts. */
static int64_t rows_before(const struct file_tensor *t, int part)
{
    int64_t rows = 0;
    for (int i = 0; i < part; i++) {
        rows += t->parts[i]->dims[0];
    }
    return rows;
}

static tensor shape_of(const struct file_tensor *t, enum dtype dtype)
{
    const struct param *p = t->parts[0];
    int64_t rows = rows_before(t, t->n_parts);
    return p->n_dims == 1  ? tensor_1d(NULL, dtype, rows)
           : t->transposed ? tensor_2d(NULL, dtype, p->dims[1], rows)
                           : tensor_2d(NULL, dtype, rows, p->dims[1]);
}

struct model_family_layout file_tensors_hugging_face(const struct model_family *family)
{
    return (struct model_family_layout){family->forms, family->joins};
}

struct status file_tensors_init(struct file_tensors *f, struct model_family_layout layout,
                                struct model_heads heads, const struct param_table *params, enum dtype dtype)
{
    *f = (struct file_tensors){.tensors = calloc((size_t)params->n + 1, sizeof *f->tensors), .heads = heads};
    FAIL_IF(f->tensors == NULL, STATUS_MEMORY, "out of memory for the list of tensors");
    for (int i = 0; i < params->n; i++) {
        if (!add_joined(f, layout.joins, params, &params->params[i])) {
            add_param(f, &params->params[i]);
        }
    }
    for (int i = 0; i < f->n; i++) {
        struct file_tensor *t = &f->tensors[i];
        struct names_order order = names_hf_rename_back(t->name, layout.renames);
        t->transposed |= order.transposed;
        t->pairs_halves = order.pairs_halves;
        t->shape = shape_of(t, dtype);
    }
    return status_ok();
}

void file_tensors_fini(struct file_tensors *f)
{
    free(f->room);
    free(f->tensors);
    *f = (struct file_tensors){0};
}

/* The row of the complete tensor, before it is transposed, that row r of a part is. */
static int64_t row_of(const struct file_tensors *f, const struct file_tensor *t, int part, int64_t r)
{
    if (t->pairs_halves) {
        int64_t d = f->heads.size, of_head = r % d;
        return r - of_head + of_head % (d / 2) * 2 + of_head / (d / 2);
    }
    int64_t blocks = t->by_head ? f->heads.n : 1, size = t->parts[part]->dims[0] / blocks;
    return (r / size * rows_before(t, t->n_parts) + rows_before(t, part)) / blocks + r % size;
}

/* Puts a part where the tensor, `to`, has it. */
static void put_part(const struct file_tensors *f, const struct file_tensor *t, int part, tensor values,
                     float *to)
{
    int64_t rows = t->parts[part]->dims[0], cols = t->parts[0]->n_dims == 1 ? 1 : t->parts[0]->dims[1];
    const float *from = values.data;
    for (int64_t r = 0; r < rows; r++) {
        int64_t row = row_of(f, t, part, r);
        for (int64_t c = 0; c < cols; c++) {
            int64_t at = t->transposed ? c * t->shape.dims[1] + row : row * cols + c;
            to[at] = from[r * cols + c];
        }
    }
}

struct status file_tensors_read(struct file_tensors *f, int i, const struct weight_source *from,
                                tensor *values)
{
    const struct file_tensor *t = &f->tensors[i];
    free(f->room);
    f->room = NULL;
    if (t->n_parts == 1 && !t->transposed && !t->pairs_halves) {
        return from->read(from->self, t->parts[0], values);
    }
    tensor out = t->shape;
    out.data = f->room = malloc(tensor_bytes(out) + 1);
    FAIL_IF(f->room == NULL, STATUS_MEMORY, "out of memory for the tensor %s", t->name);
    for (int part = 0; part < t->n_parts; part++) {
        tensor own;
        TRY(from->read(from->self, t->parts[part], &own));
        put_part(f, t, part, own, out.data);
    }
    *values = out;
    return status_ok();
}
