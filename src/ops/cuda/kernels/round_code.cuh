/* round_code: rounds a tensor to fp8 with one scale, by rows and, transposed through shared memory, by
 * columns.  The tensor may be stored or computed on the fly.
 *
 * With a history it is rounded with the scale of the step before, while the largest element is found.  If the
 * tensor has outgrown that scale, a second launch rounds it again; else its blocks exit at once.  Both
 * launches round the same number, the A that is or would be stored, so the result does not depend on which
 * ran last.
 *
 * A block owns 64 x 64 elements at a time, a thread four rows of eight columns: a row of it is read in
 * segments of 128 bytes of bf16, and rows and columns are written in segments of 64 bytes. */
#ifndef KILN_OPS_CUDA_KERNELS_ROUND_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_ROUND_CODE_CUH

#include "ops/cuda/kernels/fp8_code.cuh"
#include "ops/cuda/kernels/maxima_code.cuh"
#include "ops/cuda/kernels/sums_code.cuh"

enum {
    TILE = 64,
    TILE_THREADS = 128,
    TILE_ACROSS = TILE / EIGHT, /* threads side by side */
    ROWS_OF_THREAD = 4,
    COLUMN_WORDS = TILE / 4, /* a column of the tile in shared memory */
    PIECE_BYTES = 16,
    COLUMN_PIECES = TILE / PIECE_BYTES,
};

/* Destination of the results, and the history as bits of magnitudes: the largest of the step before and of
 * this one; both NULL without a history. */
struct round_to {
    launch_rows rows, columns;
    float *scale;
    const uint32_t *before;
    uint32_t *now;
};

static inline round_to round_to_of(const launch_rounding &to)
{
    uint32_t *history = (uint32_t *)to.history;
    return round_to{to.rows, to.columns, to.scale, history, history == NULL ? NULL : history + 1};
}

/* Size of a matrix, and its numbers of tiles down and across. */
struct tiling {
    int rows, cols, down, across;
};

static inline tiling tiling_of(int64_t rows, int64_t cols)
{
    return tiling{(int)rows, (int)cols, (int)((rows + TILE - 1) / TILE), (int)((cols + TILE - 1) / TILE)};
}

static inline unsigned tile_blocks(const tiling &t, int64_t most)
{
    int64_t n = (int64_t)t.down * t.across;
    return blocks_of(n < most ? n : most, 1);
}

/* The tiles of a block: every gridDim.x-th, without a division for each. */
struct tile_walk {
    int down, across, step_down, step_across;
};

__device__ inline tile_walk walk_begin(const tiling &t)
{
    int block = (int)blockIdx.x, blocks = (int)gridDim.x, across = t.across > 0 ? t.across : 1;
    return tile_walk{block / across, block % across, blocks / across, blocks % across};
}

__device__ inline void walk_on(tile_walk *w, const tiling &t)
{
    w->down += w->step_down;
    w->across += w->step_across;
    if (w->across >= t.across) {
        w->across -= t.across;
        w->down++;
    }
}

/* The source for stored rows.  A source loads four rows of eight columns, and turns each eight into numbers,
 * 0 always into 0; IS_STORED: of the element type; SUMS: their sums over rows are wanted; MOST_BLOCKS: the
 * number that the registers of an H100's 132 multiprocessors hold at once.  WHOLE: groups of eight at
 * multiples of 16 bytes, and no part of four rows is outside. */
template <typename A, bool WHOLE> struct read_source {
    typedef A element;
    typedef packed_eight<A> loaded;
    static const bool IS_STORED = true, SUMS = false;
    static const int MOST_BLOCKS = 1024;
    launch_rows in;

    __device__ void load(loaded (&part)[ROWS_OF_THREAD], const tiling &t, int row, int column) const
    {
        const A *from = (const A *)in.data + row * in.stride;
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            part[r] =
                WHOLE ? load_whole(from + column) : load_packed(from, column, row + r < t.rows ? t.cols : 0);
            from += in.stride;
        }
    }
    __device__ eight take(const loaded &part) const
    {
        return unpack(part);
    }
};

/* A thread's part of a tile. */
template <typename Source> struct patch {
    int row, column;
    bool inside;
    typename Source::loaded in[ROWS_OF_THREAD];
};

template <typename Source>
__device__ inline patch<Source> load_patch(const Source &source, const tiling &t, const tile_walk &w)
{
    patch<Source> p = {};
    p.row = w.down * TILE + (int)threadIdx.x / TILE_ACROSS * ROWS_OF_THREAD;
    p.column = w.across * TILE + (int)threadIdx.x % TILE_ACROSS * EIGHT;
    p.inside = p.row < t.rows && p.column < t.cols;
    if (p.inside) {
        source.load(p.in, t, p.row, p.column);
    }
    return p;
}

/* The maximum over the threads of a block, the same in all of them. */
__device__ inline uint32_t block_max(uint32_t v)
{
    __shared__ uint32_t partial[TILE_THREADS / 32];
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        uint32_t other = __shfl_xor_sync(0xffffffffU, v, distance);
        v = other > v ? other : v;
    }
    if (threadIdx.x % WARP == 0) {
        partial[threadIdx.x / WARP] = v;
    }
    __syncthreads();
    for (int w = 0; w < TILE_THREADS / WARP; w++) {
        v = partial[w] > v ? partial[w] : v;
    }
    return v;
}

/* Four words of four bytes each: byte i of word k becomes byte k of word i. */
__device__ inline void transpose_bytes(uint32_t w[4])
{
    uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
    uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, b, 0x5410), w[1] = __byte_perm(a, b, 0x7632);
    w[2] = __byte_perm(c, d, 0x5410), w[3] = __byte_perm(c, d, 0x7632);
}

/* The first word of a column of the tile in shared memory.  Four words of padding after every eight columns
 * put the words that a warp writes at once, one of each of four rows in columns eight apart, into 32
 * banks; the pieces of 16 bytes that eight threads read at once lie one after the other. */
__device__ inline int column_word(int column)
{
    return column * COLUMN_WORDS + column / EIGHT * 4;
}

/* Writes the columns of a tile from shared memory; whole pieces lie inside of the matrix or outside. */
__device__ inline void store_columns(const launch_rows &columns, const uint4 *transposed, const tiling &t,
                                     int first_row, int first_column)
{
    int piece = (int)threadIdx.x % COLUMN_PIECES, column = (int)threadIdx.x / COLUMN_PIECES;
    int row = first_row + piece * PIECE_BYTES;
    uint8_t *to = (uint8_t *)columns.data + (first_column + column) * columns.stride + row;
    UNROLL
    for (int k = 0; k < TILE * COLUMN_PIECES / TILE_THREADS; k++) {
        if (row < t.rows && first_column + column < t.cols) {
            *(uint4 *)to = transposed[column_word(column) / 4 + piece];
        }
        column += TILE_THREADS / COLUMN_PIECES;
        to += TILE_THREADS / COLUMN_PIECES * columns.stride;
    }
}

/* The four rows of a patch, in a word each for the left and the right four columns.  NOTES: also the largest
 * magnitude, and sums over rows where the source wants them. */
template <typename Source, typename F, bool NOTES>
__device__ inline void round_patch(uint32_t left[4], uint32_t right[4], float *largest, eight *sum,
                                   const Source &source, const patch<Source> &p, float inverse)
{
    typedef typename Source::element A;
    UNROLL
    for (int r = 0; r < ROWS_OF_THREAD; r++) {
        eight e = source.take(p.in[r]);
        if (NOTES && Source::SUMS) {
            add_eight(sum, e);
        }
        e = Source::IS_STORED ? e : unpack(pack(e, A()));
        if (NOTES) {
            take_largest(largest, e);
        }
        UNROLL
        for (int i = 0; i < EIGHT; i++) {
            e.v[i] *= inverse;
        }
        left[r] = pack_four<F>(e.v[0], e.v[1], e.v[2], e.v[3]);
        right[r] = pack_four<F>(e.v[4], e.v[5], e.v[6], e.v[7]);
    }
}

/* The largest magnitude and the sums of what a thread has rounded. */
struct noted {
    float largest;
    eight sum;
};

/* Stores a rounded patch: into the rows, and through shared memory, together with the other threads' patches,
 * into the columns. */
__device__ inline void store_patch(const round_to &to, const tiling &t, uint4 *transposed, int row,
                                   int column, bool inside, uint32_t left[4], uint32_t right[4])
{
    uint32_t *words = (uint32_t *)transposed;
    if (inside) {
        uint8_t *at = (uint8_t *)to.rows.data + row * to.rows.stride + column;
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            *(uint64_t *)at = left[r] | (uint64_t)right[r] << 32;
            at += to.rows.stride;
        }
    }
    if (to.columns.data == NULL) {
        return;
    }
    transpose_bytes(left);
    transpose_bytes(right);
    uint32_t *own = words + column_word(column % TILE) + row % TILE / 4;
    UNROLL
    for (int i = 0; i < 4; i++) {
        own[i * COLUMN_WORDS] = left[i];
        own[(i + 4) * COLUMN_WORDS] = right[i];
    }
    __syncthreads();
    store_columns(to.columns, transposed, t, row - row % TILE, column - column % TILE);
}

/* Rows and cols are multiples of 16, and rows of both results begin at such.  `p` is the block's first patch,
 * at `w`.  Of two tiles in shared memory one is written while slow threads read the other. */
template <typename Source, typename F, bool NOTES>
__device__ inline noted round_tiles(const round_to &to, const Source &source, const tiling &t, tile_walk w,
                                    patch<Source> p, float inverse)
{
    __shared__ uint4 transposed[2][(TILE * COLUMN_WORDS + TILE / 8 * 4) / 4];
    noted seen = {};
    for (int tile = 0; w.down < t.down; tile ^= 1) {
        uint32_t left[ROWS_OF_THREAD], right[ROWS_OF_THREAD];
        int row = p.row, column = p.column;
        bool inside = p.inside;
        round_patch<Source, F, NOTES>(left, right, &seen.largest, &seen.sum, source, p, inverse);
        walk_on(&w, t);
        p = load_patch(source, t, w); /* the next while this one is written */
        store_patch(to, t, transposed[tile], row, column, inside, left, right);
    }
    return seen;
}

/* A block raises the largest magnitude so far; few blocks need to. */
__device__ inline void raise_largest(uint32_t *now, float largest)
{
    uint32_t bits = block_max(__float_as_uint(largest) & 0x7fffffffU);
    if (threadIdx.x == 0 && bits > *(volatile uint32_t *)now) {
        atomicMax(now, bits);
    }
}

/* The sums of a block, whose tiles lie below one another, as those of its run. */
__device__ inline void store_tile_sums(float *partials, const tiling &t, eight sum)
{
    __shared__ float of_warp[TILE_THREADS / WARP][TILE];
    int across = (int)threadIdx.x % TILE_ACROSS;
    int column = (int)blockIdx.x % t.across * TILE + (int)threadIdx.x;
    UNROLL
    for (int i = 0; i < EIGHT; i++) {
        for (int distance = TILE_ACROSS; distance < WARP; distance *= 2) {
            sum.v[i] += __shfl_xor_sync(0xffffffffU, sum.v[i], distance);
        }
        if (threadIdx.x % WARP < TILE_ACROSS) {
            of_warp[threadIdx.x / WARP][across * EIGHT + i] = sum.v[i];
        }
    }
    __syncthreads();
    if (threadIdx.x < TILE && column < t.cols) {
        float total = 0;
        for (int w = 0; w < TILE_THREADS / WARP; w++) {
            total += of_warp[w][threadIdx.x];
        }
        partials[(int64_t)((int)blockIdx.x / t.across) * t.cols + column] = total;
    }
}

/* Rounds with the scale of the step before, as if everything fitted it. */
template <typename Source, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    round_noting_kernel(round_to to, Source source, tiling t, float *partials)
{
    tile_walk w = walk_begin(t);
    patch<Source> p = load_patch(source, t, w);
    float inverse = 1.0f / fp8_scale_before<F>(*to.before);
    noted seen = round_tiles<Source, F, true>(to, source, t, w, p, inverse);
    raise_largest(to.now, seen.largest);
    if (Source::SUMS) {
        store_tile_sums(partials, t, seen.sum);
    }
}

/* Whether everything fitted; *scale is the scale to round with. */
template <typename F> __device__ inline bool holds(const round_to &to, float *scale)
{
    bool fits = fp8_fits<F>(*to.before, *to.now);
    *scale = fits ? fp8_scale_before<F>(*to.before) : fp8_scale<F>(*to.now);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *to.scale = *scale;
    }
    return fits;
}

/* Rounds again if it did not fit. */
template <typename Source, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    round_again_kernel(early_start start, round_to to, Source source, tiling t)
{
    float scale;
    start.wait();
    if (!holds<F>(to, &scale)) {
        tile_walk w = walk_begin(t);
        round_tiles<Source, F, false>(to, source, t, w, load_patch(source, t, w), 1.0f / scale);
    }
}

/* Launches both.  `total` [cols] += sums over rows, whose partial sums are in scratch, if the source sums. */
template <typename Source, typename F>
static void round_by_tiles(const launch *l, const round_to &to, const Source &source, int64_t rows,
                           int64_t cols, float *total, int64_t most_runs)
{
    tiling t = tiling_of(rows, cols);
    unsigned blocks = tile_blocks(t, Source::MOST_BLOCKS);
    int64_t runs = 0;
    if (Source::SUMS) { /* the tiles of a block lie below one another */
        runs = Source::MOST_BLOCKS / t.across;
        runs = runs < most_runs ? runs : most_runs;
        runs = runs > t.down ? t.down : runs < 1 ? 1 : runs;
        blocks = (unsigned)(runs * t.across);
    }
    LAUNCH(l, (round_noting_kernel<Source, F>), blocks, TILE_THREADS, 0, to, source, t, l->scratch);
    if (Source::SUMS) {
        add_runs(l, run_totals{{total}}, 1, l->scratch, runs, cols);
    }
    LAUNCH_EARLY(l, (round_again_kernel<Source, F>), blocks, TILE_THREADS, to, source, t);
}

/* Rounds a stored tensor. */
template <typename A, typename F>
static void round_stored(const launch *l, const round_to &to, launch_rows in, int64_t rows, int64_t cols)
{
    const void *addresses[] = {in.data};
    if (rows_are_whole(cols, addresses, 1) && in.stride % EIGHT == 0) {
        round_by_tiles<read_source<A, true>, F>(l, to, read_source<A, true>{in}, rows, cols, NULL, 0);
    } else {
        round_by_tiles<read_source<A, false>, F>(l, to, read_source<A, false>{in}, rows, cols, NULL, 0);
    }
}

#endif
