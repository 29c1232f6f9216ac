/* round_rows_code: rounds complete rows, such as those of layer norms, to fp8 by rows and by columns: a block
 * keeps a band of rows in shared memory as bytes, and writes its columns once the band is complete.  The rule
 * for scales is that of round_code.cuh; a kernel whose tensor has outgrown the scale is launched again. */
#ifndef KILN_OPS_CUDA_KERNELS_ROUND_ROWS_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_ROUND_ROWS_CODE_CUH

#include "ops/cuda/kernels/round_code.cuh"

/* A band has 32 rows, so that its columns are written in full sectors of memory, or 16 of longer rows;
 * longer rows would not fit the 48 KiB that a block has by default. */
static const int BAND = 32, HALF_BAND = 16, BAND_COLS = 1280, HALF_BAND_COLS = 2560;

static inline bool band_fits(int64_t rows, int64_t cols)
{
    return cols <= HALF_BAND_COLS && rows % HALF_BAND == 0 && cols % HALF_BAND == 0;
}

static inline int band_rows(int64_t cols)
{
    return cols <= BAND_COLS ? BAND : HALF_BAND;
}

/* The first word of a row in a band, whose second half begins 16 banks after the first, since neighbouring
 * lanes read one half each. */
__device__ inline int band_word(int row, int cols)
{
    return row * (cols / 4) + row / HALF_BAND * 16;
}

static inline size_t band_bytes(int64_t cols)
{
    int rows = band_rows(cols);
    return (size_t)rows * (size_t)cols + (size_t)(rows / HALF_BAND) * 64;
}

/* The destination of rounding, and whether this is the second launch; to.now NULL: no rounding. */
struct round_rows {
    round_to to;
    int band, again;
};

/* False if there is nothing to do.  Else *inverse is 1 / the scale. */
template <typename F> __device__ inline bool round_rows_begin(const round_rows &r, float *inverse)
{
    float scale = 0;
    bool fits = r.again && holds<F>(r.to, &scale);
    *inverse = 1.0f / (r.again ? scale : fp8_scale_before<F>(*r.to.before));
    return !fits;
}

/* The place of the row with number `in_band` in its band. */
struct rounded_row {
    uint8_t *to, *band;
};

__device__ inline rounded_row round_rows_at(const round_rows &r, uint32_t *band, int in_band, int64_t row,
                                            int cols)
{
    return rounded_row{(uint8_t *)r.to.rows.data + row * r.to.rows.stride,
                       (uint8_t *)(band + band_word(in_band, cols))};
}

/* Eight columns of it. */
template <typename A, typename F>
__device__ inline void round_rows_put(const rounded_row &row, float *largest, int column, const eight &values,
                                      float inverse)
{
    eight e = unpack(pack(values, A())); /* the values that are stored */
    take_largest(largest, e);
    UNROLL
    for (int k = 0; k < EIGHT; k++) {
        e.v[k] *= inverse;
    }
    uint64_t bytes = pack_four<F>(e.v[0], e.v[1], e.v[2], e.v[3]) |
                     (uint64_t)pack_four<F>(e.v[4], e.v[5], e.v[6], e.v[7]) << 32;
    *(uint64_t *)(row.to + column) = bytes;
    *(uint64_t *)(row.band + column) = bytes;
}

/* Called once all threads have stored their parts: writes the columns of the band's rows, which begin at
 * `first`.  A thread takes 16 rows of four columns, and its neighbour the other half of the band. */
__device__ inline void round_rows_store(const round_rows &r, const uint32_t *band, int64_t first,
                                        int64_t rows, int cols)
{
    int shift = r.band == BAND;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < (cols / 4) << shift; i += BLOCK) {
        int half = i & shift, group = i >> shift;
        int64_t row = first + half * HALF_BAND;
        if (row < rows) {
            const uint32_t *from = band + band_word(half * HALF_BAND, cols) + group;
            uint8_t *at = (uint8_t *)r.to.columns.data + 4 * group * r.to.columns.stride + row;
            uint32_t piece[4][4];
            UNROLL
            for (int k = 0; k < 4; k++) {
                UNROLL
                for (int j = 0; j < 4; j++) {
                    piece[k][j] = *from;
                    from += cols / 4;
                }
                transpose_bytes(piece[k]);
            }
            UNROLL
            for (int j = 0; j < 4; j++) {
                *(uint4 *)at = make_uint4(piece[0][j], piece[1][j], piece[2][j], piece[3][j]);
                at += r.to.columns.stride;
            }
        }
    }
    __syncthreads();
}

#endif
