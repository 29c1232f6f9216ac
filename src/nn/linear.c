#include "nn/linear.h"

#include "dev/peers.h"
#include "dev/queue.h"

void fp8_factor_carve(struct fp8_factor *f, struct arena *arena, enum fp8_factors kept, enum dtype format,
                      int64_t n_rows, int64_t n_cols)
{
    *f = (struct fp8_factor){0};
    if (kept == FP8_NONE) {
        return;
    }
    f->scale = arena_carve_1d(arena, DTYPE_F32, 1);
    f->rows = arena_carve_2d(arena, kept == FP8_IN_BF16 ? DTYPE_BF16 : format, n_rows, n_cols);
    if (kept == FP8_ROWS_AND_COLUMNS) {
        f->columns = tensor_transpose(arena_carve_2d(arena, format, n_cols, n_rows));
    }
    if (kept != FP8_IN_BF16) {
        f->rows.scale = f->columns.scale = f->scale.data;
    }
}

tensor fp8_source_carve(struct arena *arena, enum fp8_factors kept, enum dtype dtype, int64_t n_rows,
                        int64_t n_cols)
{
    bool rounded = kept == FP8_ROWS || kept == FP8_ROWS_AND_COLUMNS;
    return rounded ? arena_carve_2d_maxima(arena, dtype, n_rows, n_cols)
                   : arena_carve_2d(arena, dtype, n_rows, n_cols);
}

void linear_carve_fp8_weight(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept, int64_t n_out,
                             int64_t n_in)
{
    fp8_factor_carve(&l->w, arena, kept, DTYPE_E4M3, n_out, n_in);
}

void linear_carve_fp8_input(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept,
                            int64_t n_tokens, int64_t n_in)
{
    fp8_factor_carve(&l->in, arena, kept, DTYPE_E4M3, n_tokens, n_in);
}

static bool is_fp8(const struct linear_fp8 *l)
{
    return !tensor_is_null(l->w.rows);
}

tensor fp8_rounded_by_maker(tensor t, const struct fp8_factor *f)
{
    if (!tensor_is_null(f->columns) && !tensor_is_null(f->history)) {
        t.rounded = f;
        t.has_maxima = false;
    }
    return t;
}

/* Rounds a factor, unless the op that wrote it has done so already. */
static void quantize(struct exec *x, const struct fp8_factor *f, tensor dbias, tensor from, enum dtype format)
{
    if (from.rounded == NULL) {
        x->ops->quantize(x, f->rows, f->columns, f->scale, f->history, dbias, from, format);
    }
}

void linear_round_weight(struct exec *x, tensor w, const struct linear_fp8 *l)
{
    if (is_fp8(l)) {
        quantize(x, &l->w, NULL_TENSOR, w, DTYPE_E4M3);
    }
}

/* The factor as read by a product that sums over its rows. */
static tensor by_columns(const struct fp8_factor *f)
{
    return tensor_is_null(f->columns) ? f->rows : f->columns;
}

/* The factors of a forward product: those given, or their fp8 versions. */
static tensor input_factor(struct exec *x, tensor in, const struct linear *l, const struct fp8_factor *in_fp8)
{
    if (!is_fp8(l->fp8)) {
        return in;
    }
    quantize(x, in_fp8, NULL_TENSOR, in, DTYPE_E4M3);
    return in_fp8->rows;
}

static tensor weight_factor(const struct linear *l)
{
    return is_fp8(l->fp8) ? l->fp8->w.rows : l->w;
}

void linear_forward(struct exec *x, const struct linear *l, tensor out, tensor in,
                    const struct fp8_factor *in_fp8)
{
    x->ops->linear(x, out, input_factor(x, in, l, in_fp8), weight_factor(l), l->bias);
}

void linear_forward_sum(struct exec *x, const struct linear *l, const struct stream *s, tensor out, tensor in,
                        const struct fp8_factor *in_fp8)
{
    struct linear mine = *l;
    mine.bias = peers_rank(x) == 0 ? l->bias : NULL_TENSOR;
    linear_forward(x, &mine, out, in, in_fp8);
    stream_sum(x, s, out);
}

void linear_gelu_forward(struct exec *x, const struct linear *l, tensor out, tensor pre, tensor in,
                         const struct fp8_factor *in_fp8)
{
    x->ops->linear_gelu(x, out, pre, input_factor(x, in, l, in_fp8), weight_factor(l), l->bias);
}

void linear_backward(struct exec *x, const struct linear *l, struct gradient din, tensor dout, tensor in,
                     const struct fp8_factor *dout_fp8)
{
    tensor dout_by_columns = dout, dbias = l->dbias, w = l->w;
    if (is_fp8(l->fp8)) {
        CHECK(dout.rounded == NULL || tensor_is_null(dbias), "sums of a gradient that may not be there");
        /* Gradients take e5m2, which has the wider range.  The op that rounds them also sums dbias, of the
         * values before rounding. */
        quantize(x, dout_fp8, dbias, dout, DTYPE_E5M2);
        dbias = NULL_TENSOR;
        dout = dout_fp8->rows, dout_by_columns = by_columns(dout_fp8);
        in = by_columns(&l->fp8->in), w = by_columns(&l->fp8->w);
    }
    /* No op of the backward reads the gradient of the weight, so it runs at the same time as the gradient of
     * the input, for which the layer below waits (docs/decisions/0030_work_beside.md). */
    queue_beside(x);
    x->ops->linear_backward_weight(x, l->dw.of, dbias, dout_by_columns, in, l->dw.adds);
    queue_back(x);
    x->ops->linear_backward_input(x, din.of, dout, w, din.adds);
}

void linear_backward_sum(struct exec *x, const struct linear *l, const struct stream *s, struct gradient din,
                         tensor dout, tensor in, const struct fp8_factor *dout_fp8)
{
    CHECK(!din.adds || !s->divides_rows, "all rows are added to a gradient of some");
    din.adds = din.adds && peers_rank(x) == 0;
    linear_backward(x, l, din, dout, in, dout_fp8);
    stream_sum(x, s, din.of);
}
