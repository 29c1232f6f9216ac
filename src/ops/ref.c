/* ref: the definition of every op, in double arithmetic on any dtype.
 *
 * It follows the formulas of ops.h to the letter and nothing else: no blocking, no vectors, no threads.  On
 * fp64 tensors it is the oracle of the gradient checks; on copies of rounded inputs it is the oracle of the
 * other tables. */
#include "core/fp8.h"
#include "core/rng.h"
#include "ops/attention_bits.h"
#include "ops/ops.h"
#include "ops/ref_optim.h"

#include <math.h>
#include <stdlib.h>

static bool stopped(const struct exec *x)
{
    return failed(x->status);
}

/* Element (row, col) of a matrix. */
static int64_t offset2(tensor t, int64_t row, int64_t col)
{
    CHECK(t.n_dims == 2, "a tensor of %d dims is not a matrix", t.n_dims);
    return row * t.strides[0] + col * t.strides[1];
}

static double get2(tensor t, int64_t row, int64_t col)
{
    return tensor_load(t, offset2(t, row, col));
}

static void set2(tensor t, int64_t row, int64_t col, double value)
{
    tensor_store(t, offset2(t, row, col), value);
}

static void add2(tensor t, int64_t row, int64_t col, double value)
{
    set2(t, row, col, get2(t, row, col) + value);
}

static void add1(tensor t, int64_t i, double value)
{
    tensor_set(t, i, tensor_get(t, i) + value);
}

static int64_t index_at(tensor t, int64_t i)
{
    return (int64_t)tensor_get(t, i);
}

/* The factor of dropout for element `column` of the row with this key. */
static double dropout_factor(const struct exec *x, struct dropout d, tensor row_keys, int64_t row,
                             int64_t column)
{
    uint32_t threshold = dropout_threshold(d);
    if (threshold == 0) {
        return 1.0;
    }
    uint32_t sequence = (uint32_t)get2(row_keys, row, 0);
    uint32_t position = (uint32_t)get2(row_keys, row, 1);
    struct rng_block b = rng_philox(exec_dropout_key(x), (uint32_t)(column / 8), position, sequence, d.site);
    uint32_t word = b.word[column % 8 / 2];
    uint32_t bits = column % 2 == 0 ? word & 0xffffU : word >> 16;
    return bits < threshold ? 0.0 : dropout_scale(d);
}

static void ref_fill(struct exec *x, tensor out, double value)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, value);
    }
}

static void ref_cast(struct exec *x, tensor out, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, tensor_get(in, i));
    }
}

/* As fp32 numbers, which decide ties. */
static void quantize_row(tensor rows, tensor scale, tensor in, int64_t t)
{
    float largest = 0;
    for (int64_t i = 0; i < tensor_cols(in); i++) {
        float size = fabsf((float)get2(in, t, i));
        largest = size > largest || isnan(size) ? size : largest;
    }
    float s = isfinite(largest) ? largest / 127 : NAN;
    tensor_set(scale, t, (double)s);
    for (int64_t i = 0; i < tensor_cols(in); i++) {
        float whole = s >= 0x1p-126f ? nearbyintf((float)get2(in, t, i) / s) : 0;
        ((int8_t *)rows.data)[t * rows.strides[0] + i] = (int8_t)whole;
    }
}

static void ref_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history,
                         tensor dbias, tensor in, enum dtype format)
{
    double largest = 0;
    for (int64_t t = 0; !stopped(x) && format == DTYPE_I8 && t < tensor_rows(in); t++) {
        quantize_row(rows, scale, in, t);
    }
    if (format == DTYPE_I8) {
        return;
    }
    for (int64_t i = 0; !stopped(x) && i < tensor_count(in); i++) {
        double size = fabs(tensor_get(in, i));
        largest = size > largest || isnan(size) ? size : largest;
    }
    float s = fp8_scale(format, (float)largest);
    if (!stopped(x) && !tensor_is_null(history)) {
        double earlier = tensor_get(history, 1);
        largest = earlier > largest || isnan(earlier) ? earlier : largest;
        tensor_set(history, 1, largest);
        s = fp8_scale_after(format, (float)tensor_get(history, 0), (float)largest);
    }
    if (!stopped(x)) {
        tensor_set(scale, 0, (double)s);
    }
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(in); t++) {
        for (int64_t i = 0; i < tensor_cols(in); i++) {
            double rounded = (double)(s * fp8_round(format, (float)get2(in, t, i) / s));
            set2(rows, t, i, rounded);
            if (!tensor_is_null(columns)) {
                set2(columns, t, i, rounded);
            }
            if (!tensor_is_null(dbias)) {
                add1(dbias, i, get2(in, t, i));
            }
        }
    }
}

static void ref_add(struct exec *x, tensor out, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        add1(out, i, tensor_get(in, i));
    }
}

static void ref_sum(struct exec *x, tensor total, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(in); i++) {
        add1(total, 0, tensor_get(in, i));
    }
}

static void ref_find_nonfinite(struct exec *x, tensor index, tensor in)
{
    if (stopped(x)) {
        return;
    }
    int64_t i = 0;
    while (i < tensor_count(in) && isfinite(tensor_get(in, i))) {
        i++;
    }
    tensor_set(index, 0, i < tensor_count(in) ? (double)i : -1.0);
}

static double gelu(double z)
{
    return 0.5 * z * (1.0 + erf(z * sqrt(0.5)));
}

static double gelu_slope(double z)
{
    const double inverse_sqrt_2pi = 0.39894228040143267794;
    return 0.5 * (1.0 + erf(z * sqrt(0.5))) + z * inverse_sqrt_2pi * exp(-0.5 * z * z);
}

static void ref_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(out); t++) {
        for (int64_t o = 0; o < tensor_cols(out); o++) {
            double sum = tensor_is_null(bias) ? 0.0 : tensor_get(bias, o);
            for (int64_t i = 0; i < tensor_cols(in); i++) {
                sum += get2(in, t, i) * get2(w, o, i);
            }
            set2(out, t, o, sum);
        }
    }
}

static void ref_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    pre = tensor_is_null(pre) ? out : pre;
    ref_linear(x, pre, in, w, bias);
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, gelu(tensor_get(pre, i)));
    }
}

static void ref_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate)
{
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(din); t++) {
        for (int64_t i = 0; i < tensor_cols(din); i++) {
            double sum = accumulate ? get2(din, t, i) : 0.0;
            for (int64_t o = 0; o < tensor_cols(dout); o++) {
                sum += get2(dout, t, o) * get2(w, o, i);
            }
            set2(din, t, i, sum);
        }
    }
}

static void ref_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                       bool accumulate)
{
    for (int64_t o = 0; !stopped(x) && o < tensor_cols(dout); o++) {
        double bias_sum = 0;
        for (int64_t t = 0; t < tensor_rows(dout); t++) {
            bias_sum += get2(dout, t, o);
        }
        if (!tensor_is_null(dbias)) {
            add1(dbias, o, bias_sum);
        }
        for (int64_t i = 0; i < tensor_cols(in); i++) {
            double sum = accumulate ? get2(dw, o, i) : 0.0;
            for (int64_t t = 0; t < tensor_rows(dout); t++) {
                sum += get2(dout, t, o) * get2(in, t, i);
            }
            set2(dw, o, i, sum);
        }
    }
}

static void ref_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    int64_t cols = tensor_cols(pre);
    for (int64_t f = 0; !stopped(x) && f < cols; f++) {
        double sum = 0;
        for (int64_t i = f; i < tensor_count(dpre); i += cols) {
            double slope = tensor_get(dout, i) * gelu_slope(tensor_get(pre, i));
            tensor_set(dpre, i, slope);
            sum += slope;
        }
        add1(dbias, f, sum);
    }
}

static void ref_tanh(struct exec *x, tensor out, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, tanh(tensor_get(in, i)));
    }
}

static void ref_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(din); i++) {
        double y = tensor_get(out, i);
        tensor_set(din, i, tensor_get(dout, i) * (1.0 - y * y));
    }
}

static void layernorm_row(tensor out, tensor mean, tensor rstd, tensor in, tensor gamma, tensor beta,
                          double eps, int64_t row)
{
    int64_t n = tensor_cols(in);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += get2(in, row, i);
    }
    double mu = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        squares += (get2(in, row, i) - mu) * (get2(in, row, i) - mu);
    }
    double r = 1.0 / sqrt(squares / (double)n + eps);
    if (!tensor_is_null(mean)) {
        tensor_set(mean, row, mu);
        tensor_set(rstd, row, r);
    }
    for (int64_t i = 0; i < n; i++) {
        set2(out, row, i, (get2(in, row, i) - mu) * r * tensor_get(gamma, i) + tensor_get(beta, i));
    }
}

static void ref_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                          tensor beta, double eps)
{
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(in); t++) {
        layernorm_row(out, mean, rstd, in, gamma, beta, eps, t);
    }
}

/* din = or += the gradient of `in`. */
static void add_layernorm_gradient(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout,
                                   tensor in, tensor mean, tensor rstd, tensor gamma, bool accumulate)
{
    int64_t n = tensor_cols(in);
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(in); t++) {
        double mu = tensor_get(mean, t), r = tensor_get(rstd, t);
        double mean_g = 0, mean_g_xhat = 0;
        for (int64_t i = 0; i < n; i++) {
            double xhat = (get2(in, t, i) - mu) * r;
            double g = get2(dout, t, i) * tensor_get(gamma, i);
            mean_g += g / (double)n;
            mean_g_xhat += g * xhat / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            double xhat = (get2(in, t, i) - mu) * r;
            double dy = get2(dout, t, i);
            add1(dgamma, i, dy * xhat);
            add1(dbeta, i, dy);
            double before = accumulate ? get2(din, t, i) : 0;
            set2(din, t, i, before + r * (dy * tensor_get(gamma, i) - mean_g - xhat * mean_g_xhat));
        }
    }
}

static void ref_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout,
                                   tensor in, tensor mean, tensor rstd, tensor gamma)
{
    add_layernorm_gradient(x, din, dgamma, dbeta, dout, in, mean, rstd, gamma, false);
}

static double gelu_tanh_argument(double z)
{
    const double sqrt_2_over_pi = 0.79788456080286535588;
    return sqrt_2_over_pi * (z + 0.044715 * z * z * z);
}

static void ref_gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        double z = tensor_get(pre, i);
        tensor_set(out, i, 0.5 * z * (1 + tanh(gelu_tanh_argument(z))));
    }
}

static void ref_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre)
{
    const double sqrt_2_over_pi = 0.79788456080286535588;
    for (int64_t i = 0; !stopped(x) && i < tensor_count(pre); i++) {
        double z = tensor_get(pre, i), t = tanh(gelu_tanh_argument(z));
        double slope = 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * sqrt_2_over_pi * (1 + 3 * 0.044715 * z * z);
        tensor_set(dpre, i, tensor_get(dout, i) * slope);
    }
}

static void ref_residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, tensor_get(residual, i) + tensor_get(branch, i));
    }
}

static void ref_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(in); t++) {
        for (int64_t i = 0; i < tensor_cols(in); i++) {
            set2(out, t, i, get2(in, t, i) * dropout_factor(x, drop, row_keys, t, i));
        }
    }
}

static void ref_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids,
                      tensor types, tensor positions, tensor word, tensor position, tensor type, tensor gamma,
                      tensor beta, double eps, tensor row_keys, struct dropout drop)
{
    sum = tensor_is_null(sum) ? out : sum;
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(out); t++) {
        for (int64_t i = 0; i < tensor_cols(out); i++) {
            set2(sum, t, i,
                 get2(word, index_at(ids, t), i) + get2(position, index_at(positions, t), i) +
                     get2(type, index_at(types, t), i));
        }
        layernorm_row(out, mean, rstd, sum, gamma, beta, eps, t);
        for (int64_t i = 0; i < tensor_cols(out); i++) {
            set2(out, t, i, get2(out, t, i) * dropout_factor(x, drop, row_keys, t, i));
        }
    }
}

static void ref_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                               tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                               tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                               struct dropout drop)
{
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(dout); t++) {
        for (int64_t i = 0; i < tensor_cols(dout); i++) {
            set2(dsum, t, i, get2(dout, t, i) * dropout_factor(x, drop, row_keys, t, i));
        }
    }
    ref_layernorm_backward(x, dsum, dgamma, dbeta, dsum, sum, mean, rstd, gamma);
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(dout); t++) {
        for (int64_t i = 0; i < tensor_cols(dout); i++) {
            double d = get2(dsum, t, i);
            add2(dword, index_at(ids, t), i, d);
            add2(dposition, index_at(positions, t), i, d);
            add2(dtype, index_at(types, t), i, d);
        }
    }
}

static void ref_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                           tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                           double eps, tensor row_keys, struct dropout drop)
{
    sum = tensor_is_null(sum) ? out : sum;
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(out); t++) {
        for (int64_t i = 0; i < tensor_cols(out); i++) {
            double branch = (get2(in, t, i) + tensor_get(bias, i)) * dropout_factor(x, drop, row_keys, t, i);
            set2(sum, t, i, get2(residual, t, i) + branch);
        }
        layernorm_row(out, mean, rstd, sum, gamma, beta, eps, t);
    }
}

static void ref_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din,
                                                    tensor dbias, tensor dgamma, tensor dbeta, tensor dout,
                                                    tensor sum, tensor mean, tensor rstd, tensor gamma,
                                                    tensor row_keys, struct dropout drop, bool accumulate)
{
    add_layernorm_gradient(x, dresidual, dgamma, dbeta, dout, sum, mean, rstd, gamma, accumulate);
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(dout); t++) {
        for (int64_t i = 0; i < tensor_cols(dout); i++) {
            double d = get2(dresidual, t, i) * dropout_factor(x, drop, row_keys, t, i);
            set2(din, t, i, d);
            add1(dbias, i, d);
        }
    }
}

static double get_head(tensor t, int64_t row, int64_t head, int64_t i)
{
    return tensor_load(t, row * t.strides[0] + head * t.strides[1] + i * t.strides[2]);
}

static void add_head(tensor t, int64_t row, int64_t head, int64_t i, double value)
{
    int64_t offset = row * t.strides[0] + head * t.strides[1] + i * t.strides[2];
    tensor_store(t, offset, tensor_load(t, offset) + value);
}

/* One query of one head: its row of the stream, its sequence and where that begins, and the keys [k0, k0 +
 * n_keys) that it sees. */
struct query {
    int64_t row, head, k0, n_keys, sequence, q0;
};

static double score(struct query q, tensor queries, tensor keys, const struct attention *a, int64_t j)
{
    double sum = 0;
    for (int64_t i = 0; i < queries.dims[2]; i++) {
        sum += get_head(queries, q.row, q.head, i) * get_head(keys, q.k0 + j, q.head, i);
    }
    double slope = tensor_is_null(a->alibi_slopes) ? 0.0 : tensor_get(a->alibi_slopes, q.head);
    return a->scale * sum + slope * (double)j;
}

static double probability_factor(const struct exec *x, const struct attention *a, struct query q, int64_t j)
{
    return dropout_factor(x, a->dropout, a->row_keys, q.row, (a->first_head + q.head) * 65536 + j);
}

static bool has_bits(const struct attention *a)
{
    return !tensor_is_null(a->bits) && dropout_threshold(a->dropout) > 0;
}

static struct attention_element element(struct query q, int64_t j)
{
    return (struct attention_element){q.sequence, q.q0, q.head, q.row - q.q0, j};
}

/* Calls `visit` for every query of every head, in order. */
static void for_each_query(const struct attention *a, int64_t n_heads,
                           void (*visit)(struct query q, void *context), void *context)
{
    for (int64_t b = 0; b + 1 < a->cu_seqlens_q.dims[0]; b++) {
        int64_t q0 = index_at(a->cu_seqlens_q, b), q1 = index_at(a->cu_seqlens_q, b + 1);
        int64_t k0 = index_at(a->cu_seqlens_kv, b), k1 = index_at(a->cu_seqlens_kv, b + 1);
        for (int64_t row = q0; row < q1; row++) {
            int64_t hidden_future = a->causal ? q1 - 1 - row : 0;
            for (int64_t head = 0; head < n_heads; head++) {
                visit((struct query){row, head, k0, k1 - k0 - hidden_future, b, q0}, context);
            }
        }
    }
}

struct attention_call {
    struct exec *x;
    const struct attention *a;
    tensor dq, dk, dv, dout, out, lse, q, k, v;
};

static void attend(struct query q, void *context)
{
    struct attention_call *c = context;
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < q.n_keys; j++) {
        max = fmax(max, score(q, c->q, c->k, c->a, j));
    }
    for (int64_t j = 0; j < q.n_keys; j++) {
        sum += exp(score(q, c->q, c->k, c->a, j) - max);
    }
    double lse = max + log(sum);
    set2(c->lse, q.row, q.head, lse);
    for (int64_t j = 0; j < q.n_keys; j++) {
        double keep = probability_factor(c->x, c->a, q, j);
        double p = exp(score(q, c->q, c->k, c->a, j) - lse) * keep;
        if (has_bits(c->a)) {
            attention_bits_set(c->a, element(q, j), keep != 0);
        }
        for (int64_t i = 0; i < c->v.dims[2]; i++) {
            add_head(c->out, q.row, q.head, i, p * get_head(c->v, q.k0 + j, q.head, i));
        }
    }
}

static void ref_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                          struct attention a)
{
    if (stopped(x)) {
        return;
    }
    ref_fill(x, out, 0);
    struct attention_call c = {.x = x, .a = &a, .out = out, .lse = lse, .q = q, .k = k, .v = v};
    for_each_query(&a, q.dims[1], attend, &c);
}

static void attend_backward(struct query q, void *context)
{
    struct attention_call *c = context;
    double lse = get2(c->lse, q.row, q.head), dot = 0;
    for (int64_t i = 0; i < c->v.dims[2]; i++) {
        dot += get_head(c->dout, q.row, q.head, i) * get_head(c->out, q.row, q.head, i);
    }
    for (int64_t j = 0; j < q.n_keys; j++) {
        double p = exp(score(q, c->q, c->k, c->a, j) - lse);
        double keep = !has_bits(c->a)                           ? probability_factor(c->x, c->a, q, j)
                      : attention_bits_get(c->a, element(q, j)) ? dropout_scale(c->a->dropout)
                                                                : 0.0;
        double dp = 0;
        for (int64_t i = 0; i < c->v.dims[2]; i++) {
            double d = get_head(c->dout, q.row, q.head, i);
            dp += keep * d * get_head(c->v, q.k0 + j, q.head, i);
            add_head(c->dv, q.k0 + j, q.head, i, p * keep * d);
        }
        double ds = c->a->scale * p * (dp - dot);
        for (int64_t i = 0; i < c->q.dims[2]; i++) {
            add_head(c->dq, q.row, q.head, i, ds * get_head(c->k, q.k0 + j, q.head, i));
            add_head(c->dk, q.k0 + j, q.head, i, ds * get_head(c->q, q.row, q.head, i));
        }
    }
}

/* total[first + i] += sum over rows of column i. */
static void sum_heads(tensor total, int64_t first, tensor t)
{
    for (int64_t row = 0; row < t.dims[0]; row++) {
        for (int64_t i = 0; i < t.dims[1] * t.dims[2]; i++) {
            add1(total, first + i, get_head(t, row, i / t.dims[2], i % t.dims[2]));
        }
    }
}

static void ref_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                                   tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    if (stopped(x)) {
        return;
    }
    ref_fill(x, dq, 0);
    ref_fill(x, dk, 0);
    ref_fill(x, dv, 0);
    struct attention_call c = {x, &a, dq, dk, dv, dout, out, lse, q, k, v};
    for_each_query(&a, q.dims[1], attend_backward, &c);
    if (!tensor_is_null(dbias)) {
        int64_t cols = q.dims[1] * q.dims[2];
        sum_heads(dbias, 0, dq);
        sum_heads(dbias, cols, dk);
        sum_heads(dbias, 2 * cols, dv);
    }
}

/* A key or value of a token in pages. */
struct cached {
    int64_t page, place;
};

static struct cached cached_at(int64_t slot)
{
    return (struct cached){slot / OPS_CACHE_PAGE, slot % OPS_CACHE_PAGE};
}

static void ref_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots)
{
    int64_t n_heads = k.dims[1], d = k.dims[2];
    for (int64_t t = 0; !stopped(x) && t < k.dims[0]; t++) {
        struct cached to = cached_at(index_at(slots, t));
        for (int64_t i = 0; index_at(slots, t) >= 0 && i < n_heads * d; i++) {
            int64_t row = to.page * n_heads + i / d;
            tensor_set(keys, (row * d + i % d) * OPS_CACHE_PAGE + to.place, get_head(k, t, i / d, i % d));
            tensor_set(values, (row * OPS_CACHE_PAGE + to.place) * d + i % d, get_head(v, t, i / d, i % d));
        }
    }
}

/* Copies the keys and values of a sequence out of pages. */
static void take_from_pages(tensor k, tensor v, tensor keys, tensor values, const struct attention *a,
                            int64_t sequence)
{
    int64_t n_heads = k.dims[1], d = k.dims[2], width = tensor_cols(a->block_table);
    int64_t k0 = index_at(a->cu_seqlens_kv, sequence), k1 = index_at(a->cu_seqlens_kv, sequence + 1);
    for (int64_t j = 0; j < k1 - k0; j++) {
        struct cached from = cached_at(j);
        int64_t page = index_at(a->block_table, sequence * width + from.page);
        for (int64_t i = 0; i < n_heads * d; i++) {
            int64_t row = page * n_heads + i / d, to = (k0 + j) * n_heads * d + i;
            tensor_set(k, to, tensor_get(keys, (row * d + i % d) * OPS_CACHE_PAGE + from.place));
            tensor_set(v, to, tensor_get(values, (row * OPS_CACHE_PAGE + from.place) * d + i % d));
        }
    }
}

static void ref_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                                 struct attention a)
{
    int64_t n_sequences = tensor_count(a.cu_seqlens_kv) - 1;
    int64_t n = stopped(x) ? 0 : index_at(a.cu_seqlens_kv, n_sequences), bytes = (int64_t)sizeof(double);
    int64_t row = q.dims[1] * q.dims[2];
    char *memory = malloc((size_t)(2 * n * row + q.dims[0] * q.dims[1] + 1) * (size_t)bytes);
    if (memory == NULL) {
        exec_fail(x, STATUS_MEMORY, "attention_cached", "out of memory for %lld keys", (long long)n);
        return;
    }
    tensor k = tensor_3d(memory, DTYPE_F64, n, q.dims[1], q.dims[2]), v = k, lse;
    v.data = memory + n * row * bytes;
    lse = tensor_2d(memory + 2 * n * row * bytes, DTYPE_F64, q.dims[0], q.dims[1]);
    for (int64_t b = 0; n > 0 && b < n_sequences; b++) {
        take_from_pages(k, v, keys, values, &a, b);
    }
    ref_attention(x, out, lse, q, k, v, a);
    free(memory);
}

static void ref_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first,
                             int64_t n_rows)
{
    (void)n_rows;
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(out); m++) {
        int64_t row = index_at(rows, m) - first;
        for (int64_t i = 0; i < tensor_cols(out); i++) {
            set2(out, m, i, row >= 0 && row < tensor_rows(in) ? get2(in, row, i) : 0.0);
        }
    }
}

static void ref_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    ref_gather_slice(x, out, in, rows, 0, tensor_rows(in));
}

static void ref_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                                  int64_t n_rows)
{
    (void)n_rows;
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(dout); m++) {
        int64_t row = index_at(rows, m) - first;
        for (int64_t i = 0; row >= 0 && row < tensor_rows(din) && i < tensor_cols(dout); i++) {
            add2(din, row, i, get2(dout, m, i));
        }
    }
}

static void ref_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    ref_scatter_add_slice(x, din, dout, rows, 0, tensor_rows(din));
}

static void ref_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor labels, int64_t n_classes, tensor scale)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        int64_t label = index_at(labels, m), best = 0;
        double sum = 0;
        for (int64_t c = 1; c < n_classes; c++) {
            best = get2(logits, m, c) > get2(logits, m, best) ? c : best;
        }
        double max = get2(logits, m, best);
        for (int64_t c = 0; c < n_classes; c++) {
            sum += exp(get2(logits, m, c) - max);
        }
        double lse = max + log(sum);
        tensor_set(loss, m, label < 0 ? 0.0 : lse - get2(logits, m, label));
        tensor_set(correct, m, label >= 0 && best == label);
        for (int64_t c = 0; !tensor_is_null(dlogits) && c < tensor_cols(logits); c++) {
            double p = c < n_classes ? exp(get2(logits, m, c) - lse) : 0.0;
            set2(dlogits, m, c, label < 0 ? 0.0 : tensor_get(scale, 0) * (p - (c == label)));
        }
    }
}

/* How many columns of a slice from class `first` on are classes. */
static int64_t classes_here(tensor logits, int64_t first, int64_t n_classes)
{
    int64_t n = n_classes - first;
    return n < 0 ? 0 : n < tensor_cols(logits) ? n : tensor_cols(logits);
}

static void ref_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        double max = -INFINITY;
        for (int64_t c = 0; c < classes_here(logits, first, n_classes); c++) {
            max = get2(logits, m, c) > max ? get2(logits, m, c) : max;
        }
        tensor_set(maxima, m, max);
    }
}

static void ref_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels,
                           int64_t first, int64_t n_classes)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        int64_t label = index_at(labels, m);
        double max = tensor_get(maxima, m), sum = 0, at_label = 0, before = 0;
        for (int64_t c = 0; label >= 0 && c < classes_here(logits, first, n_classes); c++) {
            double logit = get2(logits, m, c);
            sum += exp(logit - max);
            at_label += first + c == label ? logit : 0;
            before += first + c < label && logit == max;
        }
        set2(sums, m, 0, sum);
        set2(sums, m, 1, at_label);
        set2(sums, m, 2, before);
    }
}

static void ref_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits,
                                    tensor logits, tensor maxima, tensor sums, tensor labels, int64_t first,
                                    int64_t n_classes, tensor scale)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        int64_t label = index_at(labels, m);
        double max = tensor_get(maxima, m), lse = max + log(get2(sums, m, 0)), at_label = get2(sums, m, 1);
        tensor_set(loss, m, label < 0 ? 0.0 : lse - at_label);
        tensor_set(correct, m, label >= 0 && at_label == max && get2(sums, m, 2) == 0);
        for (int64_t c = 0; !tensor_is_null(dlogits) && c < tensor_cols(logits); c++) {
            bool here = c < classes_here(logits, first, n_classes);
            double p = here ? exp(get2(logits, m, c) - lse) : 0.0;
            set2(dlogits, m, c, label < 0 ? 0.0 : tensor_get(scale, 0) * (p - (first + c == label)));
        }
    }
}

/* One end of one sequence: the column `e` of its rows. */
static void span_of_sequence(tensor loss, tensor correct, tensor dlogits, tensor logits, int64_t first,
                             int64_t end, int64_t b, int64_t e, int64_t label, double scale)
{
    int64_t best = first;
    double sum = 0;
    for (int64_t t = first + 1; t < end; t++) {
        best = get2(logits, t, e) > get2(logits, best, e) ? t : best;
    }
    double max = get2(logits, best, e);
    for (int64_t t = first; t < end; t++) {
        sum += exp(get2(logits, t, e) - max);
    }
    double lse = max + log(sum);
    set2(loss, b, e, lse - get2(logits, first + label, e));
    set2(correct, b, e, best == first + label);
    for (int64_t t = first; !tensor_is_null(dlogits) && t < end; t++) {
        set2(dlogits, t, e, scale * (exp(get2(logits, t, e) - lse) - (t == first + label)));
    }
}

static void ref_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                                   tensor cu_seqlens, tensor labels, tensor scale)
{
    ref_fill(x, loss, 0);
    ref_fill(x, correct, 0);
    if (!tensor_is_null(dlogits)) {
        ref_fill(x, dlogits, 0);
    }
    for (int64_t b = 0; !stopped(x) && b < tensor_rows(labels); b++) {
        for (int64_t e = 0; e < 2; e++) {
            int64_t label = (int64_t)get2(labels, b, e);
            if (label >= 0) {
                span_of_sequence(loss, correct, dlogits, logits, index_at(cu_seqlens, b),
                                 index_at(cu_seqlens, b + 1), b, e, label, tensor_get(scale, 0));
            }
        }
    }
}

static void ref_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                          tensor targets, enum pointwise_loss kind, tensor scale)
{
    double factor = tensor_get(scale, 0);
    for (int64_t i = 0; !stopped(x) && i < tensor_count(logits); i++) {
        double z = tensor_get(logits, i), y = tensor_get(targets, i), s = 1 / (1 + exp(-z));
        double value =
            kind == POINTWISE_SQUARED ? (z - y) * (z - y) : fmax(z, 0) - z * y + log1p(exp(-fabs(z)));
        double slope = kind == POINTWISE_SQUARED ? 2 * (z - y) : s - y;
        bool is_label = !isnan(y), right = kind == POINTWISE_SIGMOID && (z > 0) == (y > 0.5);
        tensor_set(loss, i, is_label ? value : 0);
        tensor_set(correct, i, is_label && right);
        if (!tensor_is_null(dlogits)) {
            tensor_set(dlogits, i, is_label ? factor * slope : 0);
        }
    }
}

const struct ops ops_ref = {
    .name = "ref",
    .fill = ref_fill,
    .cast = ref_cast,
    .quantize = ref_quantize,
    .add = ref_add,
    .sum = ref_sum,
    .find_nonfinite = ref_find_nonfinite,
    .linear = ref_linear,
    .linear_gelu = ref_linear_gelu,
    .linear_backward_input = ref_linear_backward_input,
    .linear_backward_weight = ref_linear_backward_weight,
    .gelu_backward = ref_gelu_backward,
    .tanh = ref_tanh,
    .tanh_backward = ref_tanh_backward,
    .gelu_tanh = ref_gelu_tanh,
    .gelu_tanh_backward = ref_gelu_tanh_backward,
    .residual_add = ref_residual_add,
    .dropout = ref_dropout,
    .embed = ref_embed,
    .embed_backward = ref_embed_backward,
    .layernorm = ref_layernorm,
    .layernorm_backward = ref_layernorm_backward,
    .bias_dropout_add_layernorm = ref_bias_dropout_add_layernorm,
    .bias_dropout_add_layernorm_backward = ref_bias_dropout_add_layernorm_backward,
    .attention = ref_attention,
    .attention_backward = ref_attention_backward,
    .append_rows = ref_append_rows,
    .attention_cached = ref_attention_cached,
    .gather_rows = ref_gather_rows,
    .scatter_add_rows = ref_scatter_add_rows,
    .gather_slice = ref_gather_slice,
    .scatter_add_slice = ref_scatter_add_slice,
    .cross_entropy = ref_cross_entropy,
    .slice_maxima = ref_slice_maxima,
    .slice_sums = ref_slice_sums,
    .slice_cross_entropy = ref_slice_cross_entropy,
    .span_cross_entropy = ref_span_cross_entropy,
    .pointwise = ref_pointwise,
    .clear = ref_clear,
    .squares = ref_squares,
    .zeros = ref_zeros,
    .norm_of = ref_norm_of,
    .lamb_direction = ref_lamb_direction,
    .lamb_apply = ref_lamb_apply,
    .lans_direction = ref_lans_direction,
    .lans_apply = ref_lans_apply,
    .adamw = ref_adamw,
    .nesterov = ref_nesterov,
    .unit = ref_unit,
    .matrix_polynomial = ref_matrix_polynomial,
    .descend = ref_descend,
};
