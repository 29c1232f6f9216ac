/* ref_elements: the definition of the ops on elements and of products (ops/ref.c). */
#include "ops/ref_slots.h"

#include "core/fp8.h"
#include "ops/ref_access.h"

#include <math.h>

void ref_fill(struct exec *x, tensor out, double value)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, value);
    }
}

void ref_cast(struct exec *x, tensor out, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, tensor_get(in, i));
    }
}

/* The scale of row t in int8. */
static float int8_scale(tensor in, int64_t t)
{
    float largest = 0;
    for (int64_t i = 0; i < tensor_cols(in); i++) {
        float size = fabsf((float)get2(in, t, i));
        largest = size > largest || isnan(size) ? size : largest;
    }
    return isfinite(largest) ? largest / 127 : NAN;
}

/* Rounds an element of a row of this scale to an integer in fp32 arithmetic, which decides ties. */
static int int8_steps(tensor in, int64_t t, int64_t i, float scale)
{
    return (int)(scale >= 0x1p-126f ? nearbyintf((float)get2(in, t, i) / scale) : 0);
}

static void quantize_row(tensor rows, tensor scale, tensor in, int64_t t)
{
    float s = int8_scale(in, t);
    tensor_set(scale, t, (double)s);
    for (int64_t i = 0; i < tensor_cols(in); i++) {
        ((int8_t *)rows.data)[t * rows.strides[0] + i] = (int8_t)int8_steps(in, t, i, s);
    }
}

void ref_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history, tensor dbias,
                  tensor in, enum dtype format)
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

void ref_add(struct exec *x, tensor out, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        add1(out, i, tensor_get(in, i));
    }
}

void ref_sum(struct exec *x, tensor total, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(in); i++) {
        add1(total, 0, tensor_get(in, i));
    }
}

void ref_find_nonfinite(struct exec *x, tensor index, tensor in)
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

/* The step of row t with exec.int8_rows. */
static float step_of(tensor in, int64_t t)
{
    float low = 0, high = 0, nan = 0;
    for (int64_t i = 0; i < tensor_cols(in); i++) {
        float v = (float)get2(in, t, i);
        low = fminf(low, v);
        high = fmaxf(high, v);
        nan = isfinite(v) ? nan : NAN;
    }
    return (high - low) / 254 + nan;
}

/* Rows of both factors are integers under a scale, whose sums are exact. */
static void linear_of_integers(tensor out, tensor in, tensor w, tensor bias)
{
    for (int64_t t = 0; t < tensor_rows(out); t++) {
        float scale = step_of(in, t);
        for (int64_t o = 0; o < tensor_cols(out); o++) {
            int64_t sum = 0;
            for (int64_t i = 0; i < tensor_cols(in); i++) {
                sum += int8_steps(in, t, i, scale) * ((const int8_t *)w.data)[offset2(w, o, i)];
            }
            set2(out, t, o,
                 (double)sum * (double)(scale * w.scale[o]) +
                     (tensor_is_null(bias) ? 0.0 : tensor_get(bias, o)));
        }
    }
}

void ref_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    if (w.dtype == DTYPE_I8 && x->int8_rows && !stopped(x)) {
        linear_of_integers(out, in, w, bias);
        return;
    }
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

void ref_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    pre = tensor_is_null(pre) ? out : pre;
    ref_linear(x, pre, in, w, bias);
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, gelu(tensor_get(pre, i)));
    }
}

void ref_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate)
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

void ref_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
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

void ref_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
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

void ref_tanh(struct exec *x, tensor out, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, tanh(tensor_get(in, i)));
    }
}

void ref_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(din); i++) {
        double y = tensor_get(out, i);
        tensor_set(din, i, tensor_get(dout, i) * (1.0 - y * y));
    }
}

void ref_relu(struct exec *x, tensor out, tensor in)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        double z = tensor_get(in, i);
        tensor_set(out, i, z > 0 ? z : 0.0);
    }
}

void ref_relu_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(din); i++) {
        tensor_set(din, i, tensor_get(out, i) > 0 ? tensor_get(dout, i) : 0.0);
    }
}

static double gelu_tanh_argument(double z)
{
    const double sqrt_2_over_pi = 0.79788456080286535588;
    return sqrt_2_over_pi * (z + 0.044715 * z * z * z);
}

static double gelu_tanh(double z)
{
    return 0.5 * z * (1 + tanh(gelu_tanh_argument(z)));
}

static double gelu_tanh_slope(double z)
{
    const double sqrt_2_over_pi = 0.79788456080286535588;
    double t = tanh(gelu_tanh_argument(z));
    return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * sqrt_2_over_pi * (1 + 3 * 0.044715 * z * z);
}

void ref_gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, gelu_tanh(tensor_get(pre, i)));
    }
}

void ref_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(pre); i++) {
        tensor_set(dpre, i, tensor_get(dout, i) * gelu_tanh_slope(tensor_get(pre, i)));
    }
}

/* f(z) and its slope. */
struct gate {
    double value, slope;
};

static struct gate gate_at(double z, enum gate_function f)
{
    if (f == GATE_SILU) {
        double s = 1 / (1 + exp(-z));
        return (struct gate){z * s, s * (1 + z * (1 - s))};
    }
    if (f == GATE_GELU) {
        return (struct gate){gelu(z), gelu_slope(z)};
    }
    return (struct gate){gelu_tanh(z), gelu_tanh_slope(z)};
}

void ref_gated(struct exec *x, tensor out, tensor pre, enum gate_function f)
{
    int64_t n = tensor_cols(out);
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        int64_t at = i / n * 2 * n + i % n;
        tensor_set(out, i, gate_at(tensor_get(pre, at), f).value * tensor_get(pre, at + n));
    }
}

void ref_gated_backward(struct exec *x, tensor dpre, tensor dout, tensor pre, enum gate_function f)
{
    int64_t n = tensor_cols(dout);
    for (int64_t i = 0; !stopped(x) && i < tensor_count(dout); i++) {
        int64_t at = i / n * 2 * n + i % n;
        struct gate g = gate_at(tensor_get(pre, at), f);
        double d = tensor_get(dout, i), up = tensor_get(pre, at + n);
        tensor_set(dpre, at, d * up * g.slope);
        tensor_set(dpre, at + n, d * g.value);
    }
}

void ref_residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    for (int64_t i = 0; !stopped(x) && i < tensor_count(out); i++) {
        tensor_set(out, i, tensor_get(residual, i) + tensor_get(branch, i));
    }
}

void ref_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    for (int64_t t = 0; !stopped(x) && t < tensor_rows(in); t++) {
        for (int64_t i = 0; i < tensor_cols(in); i++) {
            set2(out, t, i, get2(in, t, i) * dropout_factor(x, drop, row_keys, t, i));
        }
    }
}
