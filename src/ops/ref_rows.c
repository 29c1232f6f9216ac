/* ref_rows: the definition of LayerNorms, embeddings, and rows of tables (ops/ref.c). */
#include "ops/ref_slots.h"

#include "ops/ref_access.h"

#include <math.h>

static void layernorm_row(tensor out, tensor mean, tensor rstd, tensor in, tensor gamma, tensor beta,
                          double eps, int64_t row)
{
    int64_t n = tensor_cols(in);
    bool is_rms = tensor_is_null(beta) && tensor_is_null(mean);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += get2(in, row, i);
    }
    double mu = is_rms ? 0 : sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        squares += (get2(in, row, i) - mu) * (get2(in, row, i) - mu);
    }
    double r = 1.0 / sqrt(squares / (double)n + eps);
    if (!tensor_is_null(mean)) {
        tensor_set(mean, row, mu);
    }
    if (!tensor_is_null(rstd)) {
        tensor_set(rstd, row, r);
    }
    for (int64_t i = 0; i < n; i++) {
        double shift = tensor_is_null(beta) ? 0 : tensor_get(beta, i);
        set2(out, row, i, (get2(in, row, i) - mu) * r * tensor_get(gamma, i) + shift);
    }
}

void ref_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma, tensor beta,
                   double eps)
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
    bool is_rms = tensor_is_null(mean);
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(in); t++) {
        double mu = is_rms ? 0 : tensor_get(mean, t), r = tensor_get(rstd, t);
        double mean_g = 0, mean_g_xhat = 0;
        for (int64_t i = 0; i < n; i++) {
            double xhat = (get2(in, t, i) - mu) * r;
            double g = get2(dout, t, i) * tensor_get(gamma, i);
            mean_g += is_rms ? 0 : g / (double)n;
            mean_g_xhat += g * xhat / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            double xhat = (get2(in, t, i) - mu) * r;
            double dy = get2(dout, t, i);
            add1(dgamma, i, dy * xhat);
            if (!tensor_is_null(dbeta)) {
                add1(dbeta, i, dy);
            }
            double before = accumulate ? get2(din, t, i) : 0;
            set2(din, t, i, before + r * (dy * tensor_get(gamma, i) - mean_g - xhat * mean_g_xhat));
        }
    }
}

void ref_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in,
                            tensor mean, tensor rstd, tensor gamma)
{
    add_layernorm_gradient(x, din, dgamma, dbeta, dout, in, mean, rstd, gamma, false);
}

void ref_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
               tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
               double eps, tensor row_keys, struct dropout drop)
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

void ref_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
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

void ref_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                    tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                    double eps, tensor row_keys, struct dropout drop)
{
    sum = tensor_is_null(sum) ? out : sum;
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(out); t++) {
        for (int64_t i = 0; i < tensor_cols(out); i++) {
            double b = tensor_is_null(bias) ? 0 : tensor_get(bias, i);
            double branch = (get2(in, t, i) + b) * dropout_factor(x, drop, row_keys, t, i);
            set2(sum, t, i, get2(residual, t, i) + branch);
        }
        layernorm_row(out, mean, rstd, sum, gamma, beta, eps, t);
    }
}

void ref_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din, tensor dbias,
                                             tensor dgamma, tensor dbeta, tensor dout, tensor sum,
                                             tensor mean, tensor rstd, tensor gamma, tensor row_keys,
                                             struct dropout drop, bool accumulate)
{
    add_layernorm_gradient(x, dresidual, dgamma, dbeta, dout, sum, mean, rstd, gamma, accumulate);
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(dout); t++) {
        for (int64_t i = 0; i < tensor_cols(dout); i++) {
            double d = get2(dresidual, t, i) * dropout_factor(x, drop, row_keys, t, i);
            set2(din, t, i, d);
            if (!tensor_is_null(dbias)) {
                add1(dbias, i, d);
            }
        }
    }
}

void ref_rotate(struct exec *x, tensor heads, tensor turns, tensor positions, bool back)
{
    int64_t n_heads = heads.dims[1], half = tensor_cols(turns) / 2;
    for (int64_t t = 0; !stopped(x) && t < heads.dims[0]; t++) {
        for (int64_t i = 0; i < n_heads * half; i++) {
            int64_t at = t * heads.strides[0] + i / half * heads.strides[1] + i % half;
            double cosine = get2(turns, index_at(positions, t), i % half);
            double sine = (back ? -1 : 1) * get2(turns, index_at(positions, t), half + i % half);
            double a = tensor_load(heads, at), b = tensor_load(heads, at + half);
            tensor_store(heads, at, a * cosine - b * sine);
            tensor_store(heads, at + half, b * cosine + a * sine);
        }
    }
}

void ref_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows)
{
    (void)n_rows;
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(out); m++) {
        int64_t row = index_at(rows, m) - first;
        for (int64_t i = 0; i < tensor_cols(out); i++) {
            set2(out, m, i, row >= 0 && row < tensor_rows(in) ? get2(in, row, i) : 0.0);
        }
    }
}

void ref_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    ref_gather_slice(x, out, in, rows, 0, tensor_rows(in));
}

void ref_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
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

void ref_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    ref_scatter_add_slice(x, din, dout, rows, 0, tensor_rows(din));
}
