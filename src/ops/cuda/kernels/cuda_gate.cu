/* cuda_gate: gates of feed-forwards, and rotary positions.  Bound by memory: each element is read and written
 * once. */
#include "ops/cuda/kernels/device_code.cuh"
#include "ops/cuda/kernels/gelu_code.cuh"

/* f(z) and its slope. */
struct gate_value {
    float value, slope;
};

struct silu_gate {
    __device__ static gate_value at(float z)
    {
        float s = 1.0f / (1.0f + expf(-z));
        return gate_value{z * s, s * (1.0f + z * (1.0f - s))};
    }
};

struct gelu_gate {
    __device__ static gate_value at(float z)
    {
        normal n = normal_at(z, float());
        return gate_value{z * n.distribution, n.distribution + z * n.density};
    }
};

struct gelu_tanh_gate {
    __device__ static gate_value at(float z)
    {
        float t = tanhf(gelu_tanh_argument(z));
        return gate_value{0.5f * z * (1.0f + t), gelu_tanh_slope(z, t)};
    }
};

/* out = f(gate) up: a thread has a group of eight columns. */
template <typename F, typename A>
__global__ static void gated_kernel(A *out, const A *pre, int64_t rows, int64_t cols)
{
    int64_t groups = (cols + EIGHT - 1) / EIGHT, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t row = i / groups, column = i % groups * EIGHT;
    if (row < rows) {
        eight gate = load_values<false>(pre + row * 2 * cols, column, cols),
              up = load_values<false>(pre + (row * 2 + 1) * cols, column, cols);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            gate.v[k] = F::at(gate.v[k]).value * up.v[k];
        }
        store_group<false>(out + row * cols, column, cols, gate);
    }
}

/* dpre = [dout up f'(gate), dout f(gate)] */
template <typename F, typename A>
__global__ static void gated_backward_kernel(A *dpre, const A *dout, const A *pre, int64_t rows, int64_t cols)
{
    int64_t groups = (cols + EIGHT - 1) / EIGHT, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t row = i / groups, column = i % groups * EIGHT;
    if (row < rows) {
        eight gate = load_values<false>(pre + row * 2 * cols, column, cols),
              up = load_values<false>(pre + (row * 2 + 1) * cols, column, cols),
              d = load_values<false>(dout + row * cols, column, cols);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            gate_value g = F::at(gate.v[k]);
            gate.v[k] = d.v[k] * up.v[k] * g.slope;
            up.v[k] = d.v[k] * g.value;
        }
        store_group<false>(dpre + row * 2 * cols, column, cols, gate);
        store_group<false>(dpre + (row * 2 + 1) * cols, column, cols, up);
    }
}

template <typename F, typename A>
static void launch_gate(const launch *l, A *out, const A *dout, const A *pre, int64_t rows, int64_t cols)
{
    unsigned n_blocks = blocks_of(rows * ((cols + EIGHT - 1) / EIGHT), BLOCK);
    if (rows * cols == 0) {
        return;
    }
    if (dout == NULL) {
        LAUNCH(l, (gated_kernel<F, A>), n_blocks, BLOCK, 0, out, pre, rows, cols);
    } else {
        LAUNCH(l, (gated_backward_kernel<F, A>), n_blocks, BLOCK, 0, out, dout, pre, rows, cols);
    }
}

template <typename A>
static void launch_function(const launch *l, A *out, const A *dout, const A *pre, launch_gate_function f,
                            int64_t rows, int64_t cols)
{
    if (f == LAUNCH_SILU) {
        launch_gate<silu_gate>(l, out, dout, pre, rows, cols);
    } else if (f == LAUNCH_GELU) {
        launch_gate<gelu_gate>(l, out, dout, pre, rows, cols);
    } else {
        launch_gate<gelu_tanh_gate>(l, out, dout, pre, rows, cols);
    }
}

void cuda_launch_gated(const launch *l, void *out, const void *dout, const void *pre, launch_type type,
                       launch_gate_function f, int64_t rows, int64_t cols)
{
    BY_TYPE(type, launch_function<A>(l, (A *)out, (const A *)dout, (const A *)pre, f, rows, cols));
}

/* A thread has a pair of columns of a head. */
template <typename A> __global__ static void rotate_kernel(A *heads, launch_rotation r, int32_t *fault)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, pair = i % r.half, head = i / r.half;
    int64_t row = head / r.n_heads;
    if (row < r.rows) {
        const float *turns = r.turns + checked_index(r.positions, row, r.n_positions, fault) * 2 * r.half;
        A *at = heads + row * r.row_stride + head % r.n_heads * r.head_stride + pair;
        float cosine = turns[pair], sine = r.back ? -turns[r.half + pair] : turns[r.half + pair];
        float a = to_float(at[0]), b = to_float(at[r.half]);
        from_float(at, a * cosine - b * sine);
        from_float(at + r.half, b * cosine + a * sine);
    }
}

void cuda_launch_rotate(const launch *l, void *heads, launch_type type, const launch_rotation *r)
{
    int64_t n = r->rows * r->n_heads * r->half;
    if (n > 0) {
        BY_TYPE(type, LAUNCH(l, rotate_kernel<A>, blocks_of(n, BLOCK), BLOCK, 0, (A *)heads, *r, l->fault));
    }
}
