#include "ops/half_ops.h"

#include <math.h>
#include <string.h>

void half_ops_round(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        float magnitude = fabsf(x[i]);
        memcpy(&u, &magnitude, sizeof u);
        u = (u + 0xfffU + (u >> 13 & 1U)) & ~UINT32_C(0x1fff); /* 10 bits of fraction stay */
        float normal;
        memcpy(&normal, &u, sizeof normal);
        float small =
            magnitude + 0.5f - 0.5f; /* the last place of 0.5 weighs 2^-24, as that of a subnormal */
        float rounded = magnitude < 0x1p-14f ? small : normal;
        rounded = magnitude >= 65520.0f ? INFINITY : rounded;
        x[i] = isnan(x[i]) ? x[i] : copysignf(rounded, x[i]);
    }
}

void half_ops_round_tensor(tensor t)
{
    if (t.n_dims == 0 || t.dtype != DTYPE_F32 || t.data == NULL) {
        return;
    }
    if (t.n_dims > 1) {
        for (int64_t i = 0; i < t.dims[0]; i++) {
            tensor inner = t;
            inner.data = (float *)t.data + i * t.strides[0];
            inner.n_dims--;
            memmove(inner.dims, t.dims + 1, sizeof t.dims - sizeof t.dims[0]);
            memmove(inner.strides, t.strides + 1, sizeof t.strides - sizeof t.strides[0]);
            half_ops_round_tensor(inner);
        }
        return;
    }
    float *x = t.data;
    if (t.strides[0] == 1) {
        half_ops_round(x, t.dims[0]);
        return;
    }
    for (int64_t i = 0; i < t.dims[0]; i++) {
        half_ops_round(x + i * t.strides[0], 1);
    }
}

static void linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    ops_cpu()->linear(x, out, in, w, bias);
    half_ops_round_tensor(out);
}

static void linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    ops_cpu()->linear_gelu(x, out, pre, in, w, bias);
    half_ops_round_tensor(out);
}

static void tanh_rounded(struct exec *x, tensor out, tensor in)
{
    ops_cpu()->tanh(x, out, in);
    half_ops_round_tensor(out);
}

static void gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    ops_cpu()->gelu_tanh(x, out, pre);
    half_ops_round_tensor(out);
}

static void residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    ops_cpu()->residual_add(x, out, residual, branch);
    half_ops_round_tensor(out);
}

static void embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
                  tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
                  double eps, tensor row_keys, struct dropout drop)
{
    ops_cpu()->embed(x, out, sum, mean, rstd, ids, types, positions, word, position, type, gamma, beta, eps,
                     row_keys, drop);
    half_ops_round_tensor(out);
}

static void layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                      tensor beta, double eps)
{
    ops_cpu()->layernorm(x, out, mean, rstd, in, gamma, beta, eps);
    half_ops_round_tensor(out);
}

static void bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                       tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                       double eps, tensor row_keys, struct dropout drop)
{
    ops_cpu()->bias_dropout_add_layernorm(x, out, sum, mean, rstd, in, bias, residual, gamma, beta, eps,
                                          row_keys, drop);
    half_ops_round_tensor(sum); /* pre-LN layers read it as their residual */
    half_ops_round_tensor(out);
}

static void attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                      struct attention a)
{
    ops_cpu()->attention(x, out, lse, q, k, v, a);
    half_ops_round_tensor(out);
}

static void attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                             struct attention a)
{
    ops_cpu()->attention_cached(x, out, q, keys, values, a);
    half_ops_round_tensor(out);
}

struct ops half_ops(void)
{
    struct ops table = *ops_cpu();
    table.linear = linear;
    table.linear_gelu = linear_gelu;
    table.tanh = tanh_rounded;
    table.gelu_tanh = gelu_tanh;
    table.residual_add = residual_add;
    table.embed = embed;
    table.layernorm = layernorm;
    table.bias_dropout_add_layernorm = bias_dropout_add_layernorm;
    table.attention = attention;
    table.attention_cached = attention_cached;
    return table;
}
