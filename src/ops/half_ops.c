#include "ops/half_ops.h"

#include "ops/op_slots.h"

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

/* An op of the cpu whose result `out` is rounded. */
#define ROUNDED(slot, parameters, arguments)                                                                 \
    static void rounded_##slot(struct exec *x, OP_UNPACK parameters)                                         \
    {                                                                                                        \
        ops_cpu()->slot(x, OP_UNPACK arguments);                                                             \
        half_ops_round_tensor(out);                                                                          \
    }

ROUNDED(linear, (tensor out, tensor in, tensor w, tensor bias), (out, in, w, bias))
ROUNDED(linear_gelu, (tensor out, tensor pre, tensor in, tensor w, tensor bias), (out, pre, in, w, bias))
ROUNDED(tanh, (tensor out, tensor in), (out, in))
ROUNDED(gelu_tanh, (tensor out, tensor pre), (out, pre))
ROUNDED(residual_add, (tensor out, tensor residual, tensor branch), (out, residual, branch))
ROUNDED(embed,
        (tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types, tensor positions,
         tensor word, tensor position, tensor type, tensor gamma, tensor beta, double eps, tensor row_keys,
         struct dropout drop),
        (out, sum, mean, rstd, ids, types, positions, word, position, type, gamma, beta, eps, row_keys, drop))
ROUNDED(layernorm, (tensor out, tensor mean, tensor rstd, tensor in, tensor gamma, tensor beta, double eps),
        (out, mean, rstd, in, gamma, beta, eps))
ROUNDED(attention, (tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a),
        (out, lse, q, k, v, a))
ROUNDED(attention_cached, (tensor out, tensor q, tensor keys, tensor values, struct attention a),
        (out, q, keys, values, a))

static void rounded_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean,
                                               tensor rstd, tensor in, tensor bias, tensor residual,
                                               tensor gamma, tensor beta, double eps, tensor row_keys,
                                               struct dropout drop)
{
    ops_cpu()->bias_dropout_add_layernorm(x, out, sum, mean, rstd, in, bias, residual, gamma, beta, eps,
                                          row_keys, drop);
    half_ops_round_tensor(sum); /* pre-LN layers read it as their residual */
    half_ops_round_tensor(out);
}

struct ops half_ops(void)
{
    struct ops table = *ops_cpu();
    table.linear = rounded_linear;
    table.linear_gelu = rounded_linear_gelu;
    table.tanh = rounded_tanh;
    table.gelu_tanh = rounded_gelu_tanh;
    table.residual_add = rounded_residual_add;
    table.embed = rounded_embed;
    table.layernorm = rounded_layernorm;
    table.bias_dropout_add_layernorm = rounded_bias_dropout_add_layernorm;
    table.attention = rounded_attention;
    table.attention_cached = rounded_attention_cached;
    return table;
}
