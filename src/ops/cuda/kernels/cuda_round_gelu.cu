/* cuda_round_gelu: GELU and its gradient, rounded to fp8 where they are computed (round_code.cuh): only fp8
 * is read later, so nothing else is written.  Bound by memory: for [T, F] in bf16 2 TF bytes are read, or 4
 * TF in the backward, and TF + TF written. */
#include "ops/cuda/kernels/gelu_code.cuh"
#include "ops/cuda/kernels/round_code.cuh"

/* gelu(pre), pre dense [rows, cols]; gelu(0) = 0. */
template <typename A> struct gelu_source {
    typedef A element;
    typedef packed_eight<A> loaded;
    static const bool IS_STORED = false, SUMS = false;
    static const int MOST_BLOCKS = 8 * 132;
    const A *pre;

    __device__ void load(loaded (&part)[ROWS_OF_THREAD], const tiling &t, int row, int column) const
    {
        const A *from = pre + (int64_t)row * t.cols + column;
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            part[r] = load_whole(from);
            from += t.cols;
        }
    }
    __device__ eight take(const loaded &part) const
    {
        eight e = unpack(part);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] = gelu<A>(e.v[k]);
        }
        return e;
    }
};

/* dout gelu'(pre), whose sums over rows are a bias's gradient: both dense [rows, cols]. */
template <typename A> struct gelu_backward_source {
    typedef A element;
    struct loaded {
        packed_eight<A> dout, pre;
    };
    static const bool IS_STORED = false, SUMS = true;
    static const int MOST_BLOCKS = 6 * 132;
    const A *dout, *pre;

    __device__ void load(loaded (&part)[ROWS_OF_THREAD], const tiling &t, int row, int column) const
    {
        int64_t at = (int64_t)row * t.cols + column;
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            part[r] = loaded{load_whole(dout + at), load_whole(pre + at)};
            at += t.cols;
        }
    }
    __device__ eight take(const loaded &part) const
    {
        eight e = unpack(part.dout), z = unpack(part.pre);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] *= gelu_slope<A>(z.v[k]);
        }
        return e;
    }
};

void cuda_launch_gelu_rounded(const launch *l, const launch_rounding *to, const void *pre, launch_type type,
                              int64_t rows, int64_t cols)
{
    BY_TYPE(type, (round_by_tiles<gelu_source<A>, e4m3>(l, round_to_of(*to), gelu_source<A>{(const A *)pre},
                                                        rows, cols, NULL, 0)));
}

void cuda_launch_gelu_backward_rounded(const launch *l, const launch_rounding *to, float *dbias,
                                       const void *dout, const void *pre, launch_type type, int64_t rows,
                                       int64_t cols, int64_t runs)
{
    BY_TYPE(type, (round_by_tiles<gelu_backward_source<A>, e5m2>(
                      l, round_to_of(*to), gelu_backward_source<A>{(const A *)dout, (const A *)pre}, rows,
                      cols, dbias, runs)));
}
