/* matrix_code: what attention with matrix instructions is written in: squares of 16 x 16 elements that a warp
 * holds in its registers, products of squares, and tiles of rows in shared memory.
 *
 * The instructions are those that sm_80 brought and later chips keep: mma.sync m16n8k16, ldmatrix, movmatrix,
 * cp.async (PTX ISA 8.7, "Matrix Fragments for mma.m16n8k16 with floating point type", "ldmatrix",
 * "movmatrix", "cp.async").  They are wrapped here and nowhere else; tests/emulated has functions of the same
 * names that follow the documented layouts.
 *
 * Who holds what: with g = lane / 4 and t = lane % 4, element i of the eight that a lane has of a square is
 * in row g + 8 (i / 2 % 2) and column 2 t + i % 2 + 8 (i / 4).  So mma leaves its sums (one instruction for
 * the left half, one for the right), and so it wants its left factor, two elements in a word: sums become a
 * factor where they are.
 *
 * Rows of a tile are 16 bytes longer than their elements, an odd number of 16-byte pieces: the eight
 * rows that ldmatrix reads at a time then lie in different banks. */
#ifndef KILN_OPS_CUDA_KERNELS_MATRIX_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_MATRIX_CODE_CUH

#include "ops/cuda/kernels/device_code.cuh"

enum { SIDE = 16, QUAD = 4, TILE_GAP = 8 };

/* Sums: 16 x 16 in fp32. */
struct square {
    float v[8];
};

/* A left or right factor: 16 x 16 elements of two bytes. */
struct factor {
    uint32_t word[4];
};

#ifdef KILN_EMULATED_MATRIX
#    include KILN_EMULATED_MATRIX
#else
#    if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#        error "attention needs compute capability 8.0 or later: see KILN_CUDA_ARCHITECTURES"
#    endif

/* A loop that stays one, for the sake of registers. */
#    define ROLLED _Pragma("unroll 1")

/* sums[0..3] += a b, where b has 8 columns. */
#    define MMA(type)                                                                                        \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                          \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                       \
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                            \
                     : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b0), "r"(b1))

__device__ inline void mma_m16n8k16(float *sums, factor a, uint32_t b0, uint32_t b1, bf16)
{
    MMA("bf16");
}

__device__ inline void mma_m16n8k16(float *sums, factor a, uint32_t b0, uint32_t b1, f16)
{
    MMA("f16");
}

/* Four matrices of 8 x 8: lane 8 m + r says where row r of matrix m starts, and receives as word m the
 * elements 2 t and 2 t + 1 of its row g; transposed, of its column g. */
#    define LDMATRIX(transposed)                                                                             \
        factor f;                                                                                            \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" transposed ".shared.b16 {%0, %1, %2, %3}, [%4];"        \
                     : "=r"(f.word[0]), "=r"(f.word[1]), "=r"(f.word[2]), "=r"(f.word[3])                    \
                     : "r"((uint32_t)__cvta_generic_to_shared(row))                                          \
                     : "memory");                                                                            \
        return f

__device__ inline factor ldmatrix_x4(const void *row)
{
    LDMATRIX("");
}

__device__ inline factor ldmatrix_x4_trans(const void *row)
{
    LDMATRIX(".trans");
}

/* Transposes a matrix of 8 x 8 halves of words, of which a lane has the elements 2 t and 2 t + 1 of row g. */
__device__ inline uint32_t movmatrix_trans(uint32_t word)
{
    uint32_t transposed;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(word));
    return transposed;
}

/* Starts to copy `bytes` (0 or 16) of global memory and to clear the rest of 16 bytes of shared memory. */
__device__ inline void cp_async_16(void *shared, const void *global, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(__cvta_generic_to_global(global)),
                   "r"(bytes)
                 : "memory");
}

/* Copies since the last commit become a group. */
__device__ inline void cp_async_commit(void)
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

/* Returns when this thread's groups are there, but for the last `PENDING`. */
template <int PENDING> __device__ inline void cp_async_wait(void)
{
    asm volatile("cp.async.wait_group %0;" : : "n"(PENDING) : "memory");
}

/* Writes a word of a tile: a function, so that tests know who wrote what. */
__device__ inline void put_word(void *at, uint32_t word)
{
    *(uint32_t *)at = word;
}
#endif

/* The place of the element of a row and column of a tile: rows one after the other, STRIDE elements apart. */
template <int STRIDE> struct plain_rows {
    static const int EIGHT_ROWS = 8 * STRIDE; /* distance from an element to that eight rows below */
    __device__ static int at(int row, int column)
    {
        return row * STRIDE + column;
    }
};

__device__ inline int lane_of_warp(void)
{
    return (int)(threadIdx.x % WARP);
}

__device__ inline int square_row(int i)
{
    return lane_of_warp() / QUAD + 8 * (i / 2 % 2);
}

__device__ inline int square_column(int i)
{
    return 2 * (lane_of_warp() % QUAD) + i % 2 + 8 * (i / 4);
}

/* Sums and maxima over the lanes that share rows of a square. */
__device__ inline float quad_sum(float v)
{
    v += __shfl_xor_sync(0xffffffffU, v, 1);
    return v + __shfl_xor_sync(0xffffffffU, v, 2);
}

__device__ inline float quad_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(0xffffffffU, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffU, v, 2));
}

/* sums += a b. */
template <typename E> __device__ inline void add_product(square *sums, factor a, factor b)
{
    mma_m16n8k16(sums->v, a, b.word[0], b.word[1], E());
    mma_m16n8k16(sums->v + 4, a, b.word[2], b.word[3], E());
}

/* Rounded. */
template <typename E> __device__ inline factor left_factor(const square &s)
{
    factor f;
    UNROLL
    for (int i = 0; i < 4; i++) {
        f.word[i] = pack_two(s.v[2 * i], s.v[2 * i + 1], E());
    }
    return f;
}

/* The row that a lane reads, of the left or right eight columns (the upper or lower eight rows come
 * first). */
template <int STRIDE, typename E> __device__ inline const E *lane_row_down(const E *at)
{
    return at + lane_of_warp() % SIDE * STRIDE + lane_of_warp() / SIDE * 8;
}

template <int STRIDE, typename E> __device__ inline const E *lane_row_across(const E *at)
{
    return at + (lane_of_warp() % 8 + lane_of_warp() / SIDE * 8) * STRIDE + lane_of_warp() / 8 % 2 * 8;
}

/* The square at `at` of a tile as a factor, or its transpose. */
template <int STRIDE, typename E> __device__ inline factor load_left(const E *at)
{
    return ldmatrix_x4(lane_row_down<STRIDE>(at));
}

template <int STRIDE, typename E> __device__ inline factor load_left_transposed(const E *at)
{
    return ldmatrix_x4_trans(lane_row_across<STRIDE>(at));
}

template <int STRIDE, typename E> __device__ inline factor load_right(const E *at)
{
    return ldmatrix_x4_trans(lane_row_down<STRIDE>(at));
}

template <int STRIDE, typename E> __device__ inline factor load_right_transposed(const E *at)
{
    return ldmatrix_x4(lane_row_across<STRIDE>(at));
}

/* Writes a left factor as the square of a tile that begins at a row and column. */
template <typename LAYOUT, typename E>
__device__ inline void store_left(E *tile, int row, int column, factor f)
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        put_word(tile + LAYOUT::at(row + square_row(2 * i), column + square_column(2 * i)), f.word[i]);
    }
}

/* All threads of the block: starts to copy COLUMNS columns of rows [row, row + ROWS) into a tile, zero
 * from row + n on.  Where each step is a multiple of eight rows, addresses are made once, and grow;
 * nothing is read of a row that is not there. */
template <int ROWS, int COLUMNS, int THREADS, typename LAYOUT = plain_rows<COLUMNS + TILE_GAP>, typename E>
__device__ inline void start_copy(E *tile, launch_rows from, int row, int n, int column)
{
    const int pieces = COLUMNS / EIGHT, turns = ROWS * pieces / THREADS, step = THREADS / pieces;
    int r = (int)(threadIdx.x / pieces), c = (int)(threadIdx.x % pieces) * EIGHT;
    if (step * pieces == THREADS && step % 8 == 0) {
        const E *next = (const E *)from.data + (int64_t)(row + r) * from.stride + column + c;
        E *to = tile + LAYOUT::at(r, c);
        UNROLL
        for (int i = 0; i < turns; i++) {
            cp_async_16(to + i * (step / 8) * LAYOUT::EIGHT_ROWS, next, r + i * step < n ? 16 : 0);
            next += step * from.stride;
        }
        return;
    }
    ROLLED
    for (int i = 0; i < turns; i++) {
        int piece = i * THREADS + (int)threadIdx.x;
        r = piece / pieces, c = piece % pieces * EIGHT;
        int64_t offset = r < n ? (int64_t)(row + r) * from.stride + column + c : 0;
        cp_async_16(tile + LAYOUT::at(r, c), (const E *)from.data + offset, r < n ? 16 : 0);
    }
}

/* A warp: writes its 16 rows of sums as rows [row, row + n) from `column` on, at most n_columns of them, by
 * way of 16 rows of a tile that no other warp uses. */
template <typename LAYOUT, typename E, int N>
__device__ inline void store_rows(launch_rows to, int row, int n, int column, const square (&sums)[N],
                                  E *tile, int n_columns = N * SIDE)
{
    const int pieces = N * SIDE / EIGHT;
    __syncwarp();
    UNROLL
    for (int i = 0; i < N; i++) {
        store_left<LAYOUT>(tile, 0, i * SIDE, left_factor<E>(sums[i]));
    }
    __syncwarp();
    const int step = WARP / pieces; /* rows of a step, where they are complete */
    int first = lane_of_warp() / pieces, c = lane_of_warp() % pieces * EIGHT;
    E *next = (E *)to.data + (int64_t)(row + first) * to.stride + column + c;
    UNROLL
    for (int i = 0; i < SIDE * pieces / WARP; i++) {
        int r = first + i * step;
        if (WARP % pieces != 0) {
            int piece = i * WARP + lane_of_warp();
            r = piece / pieces, c = piece % pieces * EIGHT;
            next = (E *)to.data + (int64_t)(row + r) * to.stride + column + c;
        }
        if (r < n && c < n_columns) {
            *(uint4 *)next = *(const uint4 *)(tile + LAYOUT::at(r, c));
        }
        next += step * to.stride;
    }
}

template <int N> __device__ inline void clear_squares(square (&sums)[N])
{
    UNROLL
    for (int i = 0; i < N * 8; i++) {
        sums[i / 8].v[i % 8] = 0.0f;
    }
}

template <int N> __device__ inline void scale_squares(square (&sums)[N], float by)
{
    UNROLL
    for (int i = 0; i < N * 8; i++) {
        sums[i / 8].v[i % 8] *= by;
    }
}

/* Sums over the 16 rows of a square of a tile, by a product with ones: lane t of the first four has those of
 * the columns square_column(0), (1), (4) and (5) in these elements of what is returned. */
template <typename LAYOUT, typename E> __device__ inline square sum_over_rows(const E *tile, int column)
{
    uint32_t two = pack_two(1.0f, 1.0f, E());
    const E *row = tile + LAYOUT::at(lane_of_warp() % SIDE, column + lane_of_warp() / SIDE * 8);
    square sums = {};
    add_product<E>(&sums, factor{{two, two, two, two}}, ldmatrix_x4_trans(row));
    return sums;
}

#endif
