#include "nn/weights.h"

#include <math.h>
#include <stdio.h>

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

/* Whether its rows are looked up, so that its gradient is a sum of rows; every other matrix is a factor of a
 * product. */
static bool is_table(const struct weight_row *row)
{
    return row->rows == DIM_VOCAB || row->rows == DIM_POSITIONS || row->rows == DIM_TYPES;
}

/* Of a part of a slab; that of heads is query, key, value. */
static enum param_init init_of(const struct weight_row *row, int part, const struct weight_sizes *sizes)
{
    static const enum param_init of_heads[] = {PARAM_INIT_NEIGHBOUR_QUERY, PARAM_INIT_NEIGHBOUR_KEY};
    if (row->rows == DIM_POSITIONS && sizes->sinusoidal_positions) {
        return PARAM_INIT_SINUSOIDS;
    }
    if (row->split == PARAM_BY_HEAD && !is_vector(row) && part < 2 && sizes->positional_heads > 0) {
        return of_heads[part];
    }
    return row->init;
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

/* The prefix is that of the part in the model's files, such as that of layer 3. */
static void full_name(char name[PARAM_NAME_BYTES], const char *prefix, const char *rest)
{
    int n = snprintf(name, PARAM_NAME_BYTES, "%s%s", prefix, rest);
    CHECK(n < PARAM_NAME_BYTES, "the parameter name %s%s is too long", prefix, rest);
}

void weights_declare(struct param_table *table, const char *prefix, int64_t layer,
                     const struct weight_row *rows, int n_rows, const struct weight_sizes *sizes)
{
    for (const struct weight_row *row = rows; row < rows + n_rows; row++) {
        int n_parts = count_parts(row);
        int64_t part_elements = sizes->padded[row->rows] * sizes->padded[row->cols];
        int64_t offset = param_table_slab(table, n_parts * part_elements);
        for (int i = 0; i < n_parts; i++) {
            enum param_init init = init_of(row, i, sizes);
            struct param p = {
                .n_dims = is_vector(row) ? 1 : 2,
                .dims = {sizes->real[row->rows], sizes->real[row->cols]},
                .init = init,
                .init_scale = init_scale(init, sizes),
                .n_heads = sizes->positional_heads,
                .decay = decays(row, init),
                .split = row->split,
                .is_bias = row->cols == DIM_BIAS,
                .by_product = !is_vector(row) && !is_table(row),
                .layer = layer,
                .offset = offset + i * part_elements,
            };
            full_name(p.name, prefix, row->names[i]);
            param_table_add(table, p);
        }
    }
}

/* A row of several parts was declared as one slab, so the place of its first part is the place of
 * the whole tensor. */
void weights_view(void *part, const struct param_table *table, const char *prefix,
                  const struct weight_row *rows, int n_rows, const struct weight_sizes *sizes,
                  tensor matrices, tensor vectors, tensor biases)
{
    for (const struct weight_row *row = rows; row < rows + n_rows; row++) {
        char name[PARAM_NAME_BYTES];
        full_name(name, prefix, row->names[0]);
        const struct param *first = param_table_find(table, name);
        CHECK(first != NULL, "%s is not in the parameter table", name);
        int64_t n_rows_in_slab = count_parts(row) * sizes->padded[row->rows];
        int64_t cols = sizes->padded[row->cols];
        tensor flat = row->cols == DIM_BIAS ? biases : row->cols == DIM_ONE ? vectors : matrices;
        tensor slab = tensor_slice(flat, first->offset, n_rows_in_slab * cols);
        *(tensor *)((char *)part + row->field) =
            is_vector(row) ? slab : tensor_2d(slab.data, slab.dtype, n_rows_in_slab, cols);
    }
}
