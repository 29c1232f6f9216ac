/* norm_code: rows in the registers of a team of warps, for the kernels of layer norms.
 *
 * The team of a row is one warp for up to 2,048 columns, four warps for more; a lane has groups of eight
 * columns, a team's width apart.  A warp whose lanes are all beyond the end of a row skips the group.  So a
 * row needs no barrier, and work per row is shared by up to 64 columns of a lane. */
#ifndef KILN_OPS_CUDA_KERNELS_NORM_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_NORM_CODE_CUH

#include "ops/cuda/kernels/device_code.cuh"

static const int NORM_WARPS = BLOCK / WARP;

/* The columns of a lane.  WHOLE: rows are whole groups, and every tensor begins at a multiple of 16 bytes. */
template <int TEAM_, int GROUPS_, bool WHOLE_> struct row_shape {
    static const int TEAM = TEAM_, GROUPS = GROUPS_, ROWS = NORM_WARPS / TEAM_; /* ROWS of a block at once */
    static const bool WHOLE = WHOLE_;

    /* The thread's row among the ROWS of a block. */
    __device__ static int row()
    {
        return (int)threadIdx.x / (TEAM * WARP);
    }
    /* The first column of the thread's group g. */
    __device__ static int column(int g)
    {
        return (g * TEAM * WARP + (int)threadIdx.x % (TEAM * WARP)) * EIGHT;
    }
};

/* The first element of a row.  A quotient of 64 bits would take registers that the kernels do not have. */
__device__ static inline int64_t place_of(const launch_places &p, int64_t row, int64_t cols)
{
    return p.n == 1 ? row * p.stride : (uint32_t)row / p.n * p.stride + (uint32_t)row % p.n * cols;
}

/* Whether rows in these places begin at whole groups if the first does. */
static inline bool places_are_whole(const launch_places &a, const launch_places &b)
{
    return a.stride % EIGHT == 0 && b.stride % EIGHT == 0;
}

/* N sums over a team, the same in all of its threads.  `partial` is shared memory, [warps][N]; two calls in a
 * row need different memory. */
template <typename S, int N> __device__ static inline void team_sums(float (&sums)[N], float (*partial)[N])
{
    UNROLL
    for (int i = 0; i < N; i++) {
        sums[i] = warp_sum(sums[i]);
    }
    if (S::TEAM == 1) {
        return;
    }
    if (threadIdx.x % WARP == 0) {
        UNROLL
        for (int i = 0; i < N; i++) {
            partial[threadIdx.x / WARP][i] = sums[i];
        }
    }
    __syncthreads();
    UNROLL
    for (int i = 0; i < N; i++) {
        sums[i] = 0;
        UNROLL
        for (int w = 0; w < NORM_WARPS; w++) {
            sums[i] += partial[w][i];
        }
    }
}

#endif
