/* Gates of feed-forwards, and rotary positions: bound by memory. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vmath.h"

enum { COLUMNS_PER_BLOCK = 1024, TOKENS_PER_ITEM = 8 };

/* ---- gates ---- */

/* f(z) and its slope. */
struct gate {
    float value, slope;
};

static inline struct gate silu(float z)
{
    float s = 1.0f / (1.0f + vmath_exp(-z));
    return (struct gate){z * s, s * (1.0f + z * (1.0f - s))};
}

static inline struct gate gelu(float z)
{
    struct vmath_normal n = vmath_normal(z);
    return (struct gate){z * n.cdf, n.cdf + z * n.density};
}

static inline struct gate gelu_tanh(float z)
{
    float t = vmath_tanh(vmath_gelu_tanh_argument(z));
    return (struct gate){0.5f * z * (1.0f + t), vmath_gelu_tanh_slope(z, t)};
}

/* Functions of one block of columns, with f a constant. */
#define GATE_BLOCKS(f)                                                                                       \
    static void f##_block(float *out, const float *gate, const float *up, int64_t n)                         \
    {                                                                                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                  \
        {                                                                                                    \
            out[i] = f(gate[i]).value * up[i];                                                               \
        }                                                                                                    \
    }                                                                                                        \
    static void f##_backward_block(float *dgate, float *dup, const float *dout, const float *gate,           \
                                   const float *up, int64_t n)                                               \
    {                                                                                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                  \
        {                                                                                                    \
            struct gate g = f(gate[i]);                                                                      \
            float d = dout[i];                                                                               \
            dgate[i] = d * up[i] * g.slope;                                                                  \
            dup[i] = d * g.value;                                                                            \
        }                                                                                                    \
    }

GATE_BLOCKS(silu)
GATE_BLOCKS(gelu)
GATE_BLOCKS(gelu_tanh)

static const struct {
    void (*forward)(float *out, const float *gate, const float *up, int64_t n);
    void (*backward)(float *dgate, float *dup, const float *dout, const float *gate, const float *up,
                     int64_t n);
} blocks[] = {[GATE_SILU] = {silu_block, silu_backward_block},
              [GATE_GELU] = {gelu_block, gelu_backward_block},
              [GATE_GELU_TANH] = {gelu_tanh_block, gelu_tanh_backward_block}};

struct gate_call {
    tensor out, pre, dpre, dout; /* out: of a forward; dpre and dout: of a backward */
    enum gate_function f;
    int64_t cols, blocks_per_row;
};

/* The columns of one item. */
struct gate_piece {
    int64_t row, first, n;
};

static struct gate_piece gate_piece_of(const struct gate_call *c, int64_t item)
{
    int64_t first = item % c->blocks_per_row * COLUMNS_PER_BLOCK;
    return (struct gate_piece){item / c->blocks_per_row, first,
                               kernel_min(COLUMNS_PER_BLOCK, c->cols - first)};
}

static void gated_item(const void *context, int64_t item, void *lane)
{
    const struct gate_call *c = context;
    const struct gate_piece p = gate_piece_of(c, item);
    float *buffer = lane;
    const float *gate = rows_load(c->pre, p.row, p.first, p.n, buffer);
    const float *up = rows_load(c->pre, p.row, c->cols + p.first, p.n, buffer + COLUMNS_PER_BLOCK);
    float *out = rows_target(c->out, p.row, p.first, buffer);
    blocks[c->f].forward(out, gate, up, p.n);
    rows_store(c->out, p.row, p.first, p.n, out);
}

static void gated_backward_item(const void *context, int64_t item, void *lane)
{
    const struct gate_call *c = context;
    const struct gate_piece p = gate_piece_of(c, item);
    float *buffer = lane;
    const float *gate = rows_load(c->pre, p.row, p.first, p.n, buffer);
    const float *up = rows_load(c->pre, p.row, c->cols + p.first, p.n, buffer + COLUMNS_PER_BLOCK);
    const float *dout = rows_load(c->dout, p.row, p.first, p.n, buffer + 2 * COLUMNS_PER_BLOCK);
    float *dgate = rows_target(c->dpre, p.row, p.first, buffer);
    float *dup = rows_target(c->dpre, p.row, c->cols + p.first, buffer + COLUMNS_PER_BLOCK);
    blocks[c->f].backward(dgate, dup, dout, gate, up, p.n);
    rows_store(c->dpre, p.row, p.first, p.n, dgate);
    rows_store(c->dpre, p.row, c->cols + p.first, p.n, dup);
}

static void run_gate(struct exec *x, const char *op, struct gate_call *c, tensor of_rows, lanes_body *body)
{
    c->cols = tensor_cols(of_rows);
    c->blocks_per_row = kernel_blocks(c->cols, COLUMNS_PER_BLOCK);
    lanes_run(x, op, tensor_rows(of_rows) * c->blocks_per_row, 3 * COLUMNS_PER_BLOCK * sizeof(float), body,
              c);
}

static void cpu_gated(struct exec *x, tensor out, tensor pre, enum gate_function f)
{
    if (accept_tensors(x, "gated", ACCEPT_LIST(out, pre), NULL, 0)) {
        struct gate_call c = {.out = out, .pre = pre, .f = f};
        run_gate(x, "gated", &c, out, gated_item);
    }
}

static void cpu_gated_backward(struct exec *x, tensor dpre, tensor dout, tensor pre, enum gate_function f)
{
    if (accept_tensors(x, "gated_backward", ACCEPT_LIST(dpre, dout, pre), NULL, 0)) {
        struct gate_call c = {.pre = pre, .dpre = dpre, .dout = dout, .f = f};
        run_gate(x, "gated_backward", &c, dout, gated_backward_item);
    }
}

/* ---- rotary positions ---- */

struct rotate_call {
    tensor heads, turns;
    const int32_t *positions;
    int64_t half; /* angles of a position */
    float sign;
};

/* Turns n pairs of columns, `half` apart. */
static void turn(float *a, float *b, const float *cosines, const float *sines, float sign, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float before = a[i], sine = sign * sines[i];
        a[i] = before * cosines[i] - b[i] * sine;
        b[i] = b[i] * cosines[i] + before * sine;
    }
}

static void turn_bf16(uint16_t *head, const struct rotate_call *c, const float *turns)
{
    for (int64_t i = 0; i < c->half; i += ROWS_PIECE) {
        int64_t n = kernel_min(ROWS_PIECE, c->half - i);
        float a[ROWS_PIECE], b[ROWS_PIECE];
        rows_piece_from_bf16(a, head + i, n);
        rows_piece_from_bf16(b, head + c->half + i, n);
        turn(a, b, turns + i, turns + c->half + i, c->sign, n);
        rows_piece_to_bf16(head + i, a, n);
        rows_piece_to_bf16(head + c->half + i, b, n);
    }
}

static void rotate_item(const void *context, int64_t item, void *lane)
{
    const struct rotate_call *c = context;
    int64_t end = kernel_min((item + 1) * TOKENS_PER_ITEM, c->heads.dims[0]);
    (void)lane;
    for (int64_t row = item * TOKENS_PER_ITEM; row < end; row++) {
        const float *turns = (const float *)c->turns.data + c->positions[row] * 2 * c->half;
        for (int64_t head = 0; head < c->heads.dims[1]; head++) {
            int64_t at = row * c->heads.strides[0] + head * c->heads.strides[1];
            if (c->heads.dtype == DTYPE_BF16) {
                turn_bf16((uint16_t *)c->heads.data + at, c, turns);
            } else {
                float *h = (float *)c->heads.data + at;
                turn(h, h + c->half, turns, turns + c->half, c->sign, c->half);
            }
        }
    }
}

static void cpu_rotate(struct exec *x, tensor heads, tensor turns, tensor positions, bool back)
{
    if (accept_tensors(x, "rotate", ACCEPT_LIST(heads), ACCEPT_LIST(turns)) &&
        accept_indices(x, "rotate", "position", positions, 0, tensor_rows(turns))) {
        struct rotate_call c = {heads, turns, positions.data, tensor_cols(turns) / 2, back ? -1.0f : 1.0f};
        lanes_run(x, "rotate", kernel_blocks(heads.dims[0], TOKENS_PER_ITEM), 0, rotate_item, &c);
    }
}

KERNEL_FILL(gate, struct ops)
{
    t->gated = cpu_gated;
    t->gated_backward = cpu_gated_backward;
    t->rotate = cpu_rotate;
}
