#include "nn/weights.h"

#include "core/integers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int count_parts(const struct weight_row *row)
{
    int n = 0;
    while (n < WEIGHT_MAX_PARTS && row->names[n] != NULL) {
        n++;
    }
    return n;
}

static bool is_vector(const struct weight_row *row)
{
    return row->cols == DIM_ONE || row->cols == DIM_BIAS;
}

/* Whether the matrix is looked up by rows, so that its gradient is a sum of rows; every other matrix is a
 * factor of a product. */
static bool is_table(const struct weight_row *row)
{
    return row->rows == DIM_VOCAB || row->rows == DIM_POSITIONS || row->rows == DIM_TYPES;
}

static enum param_init init_of(const struct weight_row *row, const struct weight_sizes *sizes)
{
    return row->rows == DIM_POSITIONS && sizes->sinusoidal_positions ? PARAM_INIT_SINUSOIDS : row->init;
}

static double init_scale(enum param_init init, const struct weight_sizes *sizes)
{
    switch (init) {
    case PARAM_INIT_UNIFORM:
        return 1.0 / sqrt((double)sizes->real[DIM_HIDDEN]); /* all such layers read the hidden state */
    case PARAM_INIT_RESIDUAL:
        return sizes->initializer_range / sqrt(2.0 * (double)sizes->n_layers); /* Radford et al. 2019, 2.3 */
    case PARAM_INIT_SINUSOIDS: return sqrt(2.0) * WEIGHT_SINUSOIDS_OF_RANGE * sizes->initializer_range;
    default: return sizes->initializer_range;
    }
}

/* Positions that begin as sinusoids do not decay: those that no sequence has reached yet have no gradient,
 * and would only fade. */
static bool decays(const struct weight_row *row, enum param_init init)
{
    return row->decay && init != PARAM_INIT_SINUSOIDS;
}

/* Joins the prefix of a part in the model's files, such as that of layer 3, and the rest of a name. */
static void full_name(char name[PARAM_NAME_BYTES], const char *prefix, const char *rest)
{
    int n = snprintf(name, PARAM_NAME_BYTES, "%s%s", prefix, rest);
    CHECK(n < PARAM_NAME_BYTES, "the parameter name %s%s is too long", prefix, rest);
}

enum { VOCAB_GRAIN = 8 }; /* so that products over a slice are aligned */

int64_t weights_vocab_rows(int64_t padded, int n_slices)
{
    return n_slices == 1 ? padded : int_round_up((padded + n_slices - 1) / n_slices, VOCAB_GRAIN);
}

/* The slice of a row's parameters that a table has: rows [first[0], first[0] + real[0]) of the complete
 * tensor and columns likewise; padded: the numbers of both in memory. */
struct piece {
    int64_t first[2], real[2], padded[2];
};

static bool splits(const struct weight_row *row, enum param_split split)
{
    return row->split == split || (split == PARAM_BY_ROW && row->split == PARAM_BY_HEAD);
}

static void cut_evenly(struct piece *p, int dim, const struct param_part *part)
{
    int64_t n = p->real[dim] / param_part_slices(part);
    p->first[dim] = n * part->slice;
    p->real[dim] = p->padded[dim] = n;
}

static enum weight_dim rows_of(const struct weight_row *row, int part)
{
    return part == 0 || row->more_rows == DIM_ONE ? row->rows : row->more_rows;
}

/* Of the parameter of a part of the row, such as that of keys. */
static struct piece piece_of(const struct weight_row *row, int row_part, const struct weight_sizes *sizes,
                             const struct param_part *part)
{
    enum weight_dim rows = rows_of(row, row_part);
    struct piece p = {
        {0, 0}, {sizes->real[rows], sizes->real[row->cols]}, {sizes->padded[rows], sizes->padded[row->cols]}};
    if (splits(row, PARAM_BY_ROW)) {
        cut_evenly(&p, 0, part);
    } else if (splits(row, PARAM_BY_COL)) {
        cut_evenly(&p, 1, part);
    } else if (splits(row, PARAM_BY_WORD)) {
        int64_t n = weights_vocab_rows(p.padded[0], param_part_slices(part)), first = n * part->slice;
        p.first[0] = int_smaller(first, p.real[0]);
        p.real[0] = int_smaller(p.real[0] - p.first[0], n);
        p.padded[0] = n;
    }
    return p;
}

/* The rows in memory of all parts. */
static int64_t slab_rows(const struct weight_row *row, const struct weight_sizes *sizes,
                         const struct param_part *part)
{
    int64_t n = 0;
    for (int i = 0; i < count_parts(row); i++) {
        n += piece_of(row, i, sizes, part).padded[0];
    }
    return n;
}

/* Whether the part has the row: its layer, or a copy of it for the last layer. */
static bool has_row(const struct param_part *part, int64_t layer, const char *name, bool *is_copy)
{
    *is_copy = !param_part_has(part, layer) && part->tied != NULL && strcmp(part->tied, name) == 0;
    return *is_copy || param_part_has(part, layer);
}

void weights_declare(void *declaration, void *part, const char *prefix, int64_t layer,
                     const struct weight_row *rows, int n_rows)
{
    const struct weight_declaration *d = declaration;
    const struct weight_sizes *sizes = &d->sizes;
    struct param_table *table = d->table;
    (void)part;
    for (const struct weight_row *row = rows; row < rows + n_rows; row++) {
        int64_t n_slab_rows = slab_rows(row, sizes, &table->part);
        int64_t cols = piece_of(row, 0, sizes, &table->part).padded[1];
        char name[PARAM_NAME_BYTES];
        bool is_copy;
        full_name(name, prefix, row->names[0]);
        if (!has_row(&table->part, layer, name, &is_copy)) {
            continue;
        }
        int64_t offset = param_table_slab(table, n_slab_rows * cols), first_row = table->n_rows;
        table->n_rows += is_vector(row) ? 0 : n_slab_rows;
        enum param_init init = init_of(row, sizes);
        int64_t at = 0;
        for (int i = 0; i < count_parts(row); i++) {
            struct piece piece = piece_of(row, i, sizes, &table->part);
            struct param p = {
                .n_dims = is_vector(row) ? 1 : 2,
                .dims = {piece.real[0], piece.real[1]},
                .full = {sizes->real[rows_of(row, i)], sizes->real[row->cols]},
                .first = {piece.first[0], piece.first[1]},
                .init = init,
                .init_scale = init_scale(init, sizes),
                .decay = decays(row, init),
                .split = row->split,
                .is_bias = row->cols == DIM_BIAS,
                .by_product = !is_vector(row) && !is_table(row),
                .is_copy = is_copy,
                .layer = layer,
                .offset = offset + at * cols,
                .row = first_row + at,
            };
            at += piece.padded[0];
            full_name(p.name, prefix, row->names[i]);
            param_table_add(table, p);
        }
    }
}

/* A row of several parts was declared as one slab, so the place of its first part is the place of the
 * complete tensor. */
void weights_view(void *view, void *part, const char *prefix, int64_t layer, const struct weight_row *rows,
                  int n_rows)
{
    const struct weight_view *v = view;
    const struct param_table *table = v->table;
    (void)layer;
    for (const struct weight_row *row = rows; row < rows + n_rows; row++) {
        char name[PARAM_NAME_BYTES];
        full_name(name, prefix, row->names[0]);
        const struct param *first = param_table_find(table, name);
        if (first == NULL) {
            CHECK(!param_part_is_all(&table->part), "%s is not in the parameter table", name);
            continue;
        }
        int64_t n_rows_in_slab = slab_rows(row, &v->sizes, &table->part);
        int64_t cols = piece_of(row, 0, &v->sizes, &table->part).padded[1];
        tensor flat = row->cols == DIM_BIAS ? v->biases : row->cols == DIM_ONE ? v->vectors : v->matrices;
        tensor slab = tensor_slice(flat, first->offset, n_rows_in_slab * cols);
        tensor matrix = tensor_2d(slab.data, slab.dtype, n_rows_in_slab, cols);
        matrix.scale = flat.scale == NULL ? NULL : flat.scale + first->row;
        *(tensor *)((char *)part + row->field) = is_vector(row) ? slab : matrix;
    }
}
