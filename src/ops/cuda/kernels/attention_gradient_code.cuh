/* attention_gradient_code: shared by the kernels of attention's gradient: the statistics of a query, and the
 * gradient of a score. */
#ifndef KILN_OPS_CUDA_KERNELS_ATTENTION_GRADIENT_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_ATTENTION_GRADIENT_CODE_CUH

#include "ops/cuda/kernels/attention_code.cuh"

/* A quad lane's part of a row of out: every fourth 16 bytes. */
template <int D> struct row_part {
    uint4 piece[D / 32];
};

/* Zeros if there is no such query. */
template <typename E, int D>
__device__ static inline row_part<D> load_part(launch_rows rows, const place &p, int query)
{
    row_part<D> part;
    UNROLL
    for (int i = 0; i < D / 32; i++) {
        part.piece[i] = make_uint4(0, 0, 0, 0);
        if (query < p.n_q) {
            part.piece[i] = *(const uint4 *)((const E *)rows.data + (int64_t)(p.q0 + query) * rows.stride +
                                             p.head * D + (lane_of_warp() % QUAD + i * QUAD) * EIGHT);
        }
    }
    return part;
}

template <typename E> __device__ static inline float dot_two(uint32_t a, uint32_t b)
{
    return to_float(E{(uint16_t)a}) * to_float(E{(uint16_t)b}) +
           to_float(E{(uint16_t)(a >> 16)}) * to_float(E{(uint16_t)(b >> 16)});
}

/* The product of two rows; the same in all lanes of the quad. */
template <typename E, int D>
__device__ static inline float dot_parts(const row_part<D> &one, const row_part<D> &other)
{
    float sum = 0;
    UNROLL
    for (int i = 0; i < D / 32; i++) {
        uint4 a = one.piece[i], b = other.piece[i];
        sum += dot_two<E>(a.x, b.x) + dot_two<E>(a.y, b.y) + dot_two<E>(a.z, b.z) + dot_two<E>(a.w, b.w);
    }
    return quad_sum(sum);
}

/* The product of a row and a row of a tile in shared memory. */
template <typename LAYOUT, typename E, int D>
__device__ static inline float dot_row(const row_part<D> &part, const E *tile, int row)
{
    row_part<D> of_tile;
    UNROLL
    for (int i = 0; i < D / 32; i++) {
        of_tile.piece[i] =
            *(const uint4 *)(tile + LAYOUT::at(row, (lane_of_warp() % QUAD + i * QUAD) * EIGHT));
    }
    return dot_parts<E>(part, of_tile);
}

/* lse in units of log 2; so large that probabilities vanish if there is no query, or it sees no key. */
__device__ static inline float load_lse(const launch_attention &a, const attention_rows &r, const place &p,
                                        int query)
{
    float lse = query < p.n_q ? r.lse[(int64_t)(p.q0 + query) * a.n_heads + p.head] : -INFINITY;
    return lse == -INFINITY ? INFINITY : lse * LOG2_E;
}

/* A probability, from a score without its factor `unit`. */
__device__ static inline float probability_of(float score, float unit, float lse)
{
    return exp2_approx(fmaf(unit, score, -lse));
}

/* dS without the scale of scores, from a probability and dP. */
__device__ static inline float score_gradient(float probability, float dp, float delta, bool kept,
                                              float keep_scale)
{
    return probability * fmaf(keep_scale, kept ? dp : 0.0f, -delta);
}

#endif
