/* cuda_quantize: a tensor rounded to fp8 under one scale, by rows and, transposed through shared memory, by columns.
 *
 * A tensor with a history is rounded under the scale of the step before while the largest element is looked for; only what
 * has outgrown that scale is rounded again, by a kernel behind, whose blocks else leave at once.  Without a history the
 * scale is that of the largest element, which the tensor's maker has noted; else a kernel before looks for it, and sums the
 * columns in the same reading where a bias's gradient is wanted (cuda_sums.cu).  Bound by memory: of [T, I] in bf16 2 TI
 * bytes are read, twice if the largest must be known and is not, and TI + TI written as fp8, or 2 TI where fp8 is kept in
 * bf16.
 *
 * A block owns 64 x 64 elements at a time, a thread four rows of eight columns: a row of it is read in segments of
 * 128 bytes of bf16, and rows and columns are written in segments of 64 bytes. */
#include "ops/cuda/fp8_code.cuh"
#include "ops/cuda/maxima_code.cuh"

enum {
    TILE = 64,
    TILE_THREADS = 128,
    ROWS_OF_THREAD = 4,
    COLUMN_WORDS = TILE / 4, /* a column of the tile in shared memory */
    PIECE_BYTES = 16,
    COLUMN_PIECES = TILE / PIECE_BYTES,
    MOST_BLOCKS = 1024, /* as many as an H100 holds at once; each reads the maxima, 4 KiB */
};

/* What a thread owns of a tile. */
template <typename A> struct patch {
    int64_t row, column;
    packed_eight<A> in[ROWS_OF_THREAD];
};

/* How a matrix is cut. */
struct tiling {
    int64_t rows, cols;
    int across, n;
};

static tiling tiling_of(int64_t rows, int64_t cols)
{
    int64_t down = (rows + TILE - 1) / TILE, across = (cols + TILE - 1) / TILE;
    return tiling{rows, cols, (int)(across > 0 ? across : 1), (int)(down * across)};
}

/* Zero outside of the matrix, as behind the last tile. */
template <typename A> __device__ static inline patch<A> load_patch(launch_rows in, const tiling &t, int tile)
{
    const int across = TILE / EIGHT;
    patch<A> p;
    p.row = (int64_t)(tile / t.across) * TILE + threadIdx.x / across * ROWS_OF_THREAD;
    p.column = (int64_t)(tile % t.across) * TILE + threadIdx.x % across * EIGHT;
    UNROLL
    for (int r = 0; r < ROWS_OF_THREAD; r++) {
        p.in[r] = load_packed((const A *)in.data + (p.row + r) * in.stride, p.column,
                              p.row + r < t.rows ? t.cols : 0);
    }
    return p;
}

/* The maximum over the threads of a block, the same in all of them. */
__device__ static inline uint32_t block_max(uint32_t v)
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

/* Magnitudes as bits: those of numbers are in their order, infinity and NaN above all. */
template <typename A>
__global__ static void __launch_bounds__(TILE_THREADS)
    maxima_kernel(uint32_t *maxima, launch_rows in, tiling t)
{
    uint32_t largest = 0;
    for (int tile = (int)blockIdx.x; tile < t.n; tile += (int)gridDim.x) {
        patch<A> p = load_patch<A>(in, t, tile);
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            eight e = unpack(p.in[r]);
            UNROLL
            for (int i = 0; i < EIGHT; i++) {
                uint32_t bits = __float_as_uint(e.v[i]) & 0x7fffffffU;
                largest = bits > largest ? bits : largest;
            }
        }
    }
    largest = block_max(largest);
    if (threadIdx.x == 0) {
        maxima[blockIdx.x] = largest;
    }
}

/* What is known of the tensors in a place, as bits of magnitudes: the largest of the step before, and of this one; both
 * NULL without a history. */
struct known {
    const uint32_t *before;
    uint32_t *now;
};

/* Of the whole tensor; block 0 writes it. */
template <typename F>
__device__ static inline float find_scale(float *scale, known k, const uint32_t *maxima, int n)
{
    uint32_t largest = 0;
    for (int i = threadIdx.x; i < n; i += TILE_THREADS) {
        largest = maxima[i] > largest ? maxima[i] : largest;
    }
    largest = block_max(largest);
    if (k.now != NULL) { /* whether block 0 has raised it or not yet, the larger of both is the same */
        uint32_t earlier = *(volatile uint32_t *)k.now;
        largest = earlier > largest ? earlier : largest;
    }
    bool holds = k.now != NULL && fp8_fits<F>(*k.before, largest);
    float found = holds ? fp8_scale_before<F>(*k.before) : fp8_scale<F>(largest);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *scale = found;
        if (k.now != NULL) {
            atomicMax(k.now, largest);
        }
    }
    return found;
}

/* As A, what fp8 with this scale can hold. */
template <typename A, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    hold_kernel(launch_rows out, float *scale, known k, const uint32_t *maxima, int n_maxima, launch_rows in,
                tiling t)
{
    patch<A> p = load_patch<A>(in, t, (int)blockIdx.x); /* under way while the scale is found */
    float s = find_scale<F>(scale, k, maxima, n_maxima), inverse = 1.0f / s; /* of a power of two: exact */
    for (int tile = (int)blockIdx.x; tile < t.n; tile += (int)gridDim.x) {
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            eight e = unpack(p.in[r]);
            UNROLL
            for (int i = 0; i < EIGHT; i++) {
                e.v[i] = s * fp8_round<F>(inverse * e.v[i]);
            }
            store_eight((A *)out.data + (p.row + r) * out.stride, p.column, p.row + r < t.rows ? t.cols : 0,
                        e);
        }
        p = load_patch<A>(in, t, tile + (int)gridDim.x);
    }
}

/* Four words of four bytes each: byte i of word k becomes byte k of word i. */
__device__ static inline void transpose_bytes(uint32_t w[4])
{
    uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
    uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, b, 0x5410), w[1] = __byte_perm(a, b, 0x7632);
    w[2] = __byte_perm(c, d, 0x5410), w[3] = __byte_perm(c, d, 0x7632);
}

/* Where a column of the tile begins in shared memory, in words.  Four words of room behind every eight columns put the
 * words that a warp writes at once, one of each of four rows in columns eight apart, into 32 banks; the pieces of
 * 16 bytes that eight threads read at once lie one after the other. */
__device__ static inline int column_word(int column)
{
    return column * COLUMN_WORDS + column / EIGHT * 4;
}

/* Writes the columns of a tile from shared memory; whole pieces lie inside of the matrix or outside. */
__device__ static inline void store_columns(launch_rows columns, const uint4 *transposed, int64_t first_row,
                                            int64_t first_column, const tiling &t)
{
    for (int i = threadIdx.x; i < TILE * COLUMN_PIECES; i += TILE_THREADS) {
        int column = i / COLUMN_PIECES, piece = i % COLUMN_PIECES;
        int64_t row = first_row + piece * PIECE_BYTES;
        if (row < t.rows && first_column + column < t.cols) {
            uint8_t *to = (uint8_t *)columns.data + (first_column + column) * columns.stride + row;
            *(uint4 *)to = transposed[column_word(column) / 4 + piece];
        }
    }
}

/* The four rows of a patch, in a word each for the left and the right four columns. */
template <typename A, typename F, bool NOTES>
__device__ static inline void round_patch(uint32_t left[4], uint32_t right[4], float *largest,
                                          const patch<A> &p, float inverse)
{
    UNROLL
    for (int r = 0; r < ROWS_OF_THREAD; r++) {
        eight e = unpack(p.in[r]);
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

/* As fp8: rows and cols are multiples of 16, and rows of both results begin at such.  `p` is the first patch; NOTES: the
 * largest magnitude is looked for on the way. */
template <typename A, typename F, bool NOTES>
__device__ static inline float round_tiles(launch_rows out, launch_rows columns, launch_rows in,
                                           const tiling &t, patch<A> p, float inverse)
{
    __shared__ uint4 transposed[(TILE * COLUMN_WORDS + TILE / 8 * 4) / 4];
    uint32_t *words = (uint32_t *)transposed;
    float largest = 0;
    for (int tile = (int)blockIdx.x; tile < t.n; tile += (int)gridDim.x) {
        uint32_t left[ROWS_OF_THREAD], right[ROWS_OF_THREAD];
        int64_t row = p.row, column = p.column;
        round_patch<A, F, NOTES>(left, right, &largest, p, inverse);
        p = load_patch<A>(in, t, tile + (int)gridDim.x); /* and the next while this one is written */
        if (row < t.rows && column < t.cols) {
            UNROLL
            for (int r = 0; r < ROWS_OF_THREAD; r++) {
                uint8_t *to = (uint8_t *)out.data + (row + r) * out.stride + column;
                *(uint64_t *)to = left[r] | (uint64_t)right[r] << 32;
            }
        }
        if (columns.data == NULL) {
            continue;
        }
        transpose_bytes(left);
        transpose_bytes(right);
        UNROLL
        for (int i = 0; i < 4; i++) {
            int word = (int)(row % TILE) / 4, first = (int)(column % TILE) + i;
            words[column_word(first) + word] = left[i];
            words[column_word(first + 4) + word] = right[i];
        }
        __syncthreads();
        store_columns(columns, transposed, row - row % TILE, column - column % TILE, t);
        __syncthreads();
    }
    return largest;
}

/* Under the scale of the largest element, which is known. */
template <typename A, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    round_kernel(launch_rows out, launch_rows columns, float *scale, const uint32_t *maxima, int n_maxima,
                 launch_rows in, tiling t)
{
    patch<A> p = load_patch<A>(in, t, (int)blockIdx.x); /* under way while the scale is found */
    float inverse = 1.0f / find_scale<F>(scale, known{NULL, NULL}, maxima, n_maxima);
    round_tiles<A, F, false>(out, columns, in, t, p, inverse);
}

/* Under the scale of the step before, as if all fitted it. */
template <typename A, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    round_noting_kernel(launch_rows out, launch_rows columns, known k, launch_rows in, tiling t)
{
    patch<A> p = load_patch<A>(in, t, (int)blockIdx.x);
    float inverse = 1.0f / fp8_scale_before<F>(*k.before);
    float largest = round_tiles<A, F, true>(out, columns, in, t, p, inverse);
    uint32_t bits = block_max(__float_as_uint(largest) & 0x7fffffffU);
    if (threadIdx.x == 0 && bits > *(volatile uint32_t *)k.now) {
        atomicMax(k.now, bits);
    }
}

/* And again, if it did not. */
template <typename A, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    round_again_kernel(early_start start, launch_rows out, launch_rows columns, float *scale, known k,
                       launch_rows in, tiling t)
{
    start.wait();
    bool holds = fp8_fits<F>(*k.before, *k.now);
    float s = holds ? fp8_scale_before<F>(*k.before) : fp8_scale<F>(*k.now);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *scale = s;
    }
    if (!holds) {
        patch<A> p = load_patch<A>(in, t, (int)blockIdx.x);
        round_tiles<A, F, false>(out, columns, in, t, p, 1.0f / s);
    }
}

/* The maxima of a tensor that came without, in front of the partial sums of columns where those are summed in the same
 * reading; their number. */
template <typename A>
static const uint32_t *find_maxima(const launch *l, const launch_quantize *q, const tiling &t, int *n)
{
    uint32_t *maxima = (uint32_t *)l->scratch;
    if (q->dbias != NULL && q->n_rows > 0) {
        launch behind = *l;
        behind.scratch += LAUNCH_MOST_MAXIMA;
        cuda_launch_column_sum(&behind, q->dbias, q->in, q->type, q->n_rows, q->n_cols, q->runs, maxima);
        return maxima;
    }
    *n = (int)blocks_of(t.n < LAUNCH_MOST_MAXIMA ? t.n : LAUNCH_MOST_MAXIMA, 1);
    LAUNCH(l, maxima_kernel<A>, *n, TILE_THREADS, 0, maxima, q->in, t);
    return maxima;
}

static known known_of(const launch_quantize *q)
{
    uint32_t *history = (uint32_t *)q->history;
    return known{history, history == NULL ? NULL : history + 1};
}

/* Where the scale must be found first. */
template <typename A, typename F>
static void find_and_round(const launch *l, const launch_quantize *q, const tiling &t, unsigned blocks)
{
    int parts = LAUNCH_MOST_MAXIMA;
    const uint32_t *maxima = q->maxima;
    if (maxima == NULL) {
        maxima = find_maxima<A>(l, q, t, &parts);
    } else if (q->dbias != NULL) {
        cuda_launch_column_sum(l, q->dbias, q->in, q->type, q->n_rows, q->n_cols, q->runs, NULL);
    }
    if (q->held) {
        LAUNCH(l, (hold_kernel<A, F>), blocks, TILE_THREADS, 0, q->rows, q->scale, known_of(q), maxima, parts,
               q->in, t);
    } else {
        LAUNCH(l, (round_kernel<A, F>), blocks, TILE_THREADS, 0, q->rows, q->columns, q->scale, maxima, parts,
               q->in, t);
    }
}

template <typename A, typename F> static void quantize(const launch *l, const launch_quantize *q)
{
    tiling t = tiling_of(q->n_rows, q->n_cols);
    unsigned blocks = blocks_of(t.n < MOST_BLOCKS ? t.n : MOST_BLOCKS, 1);
    if (q->history == NULL || q->held) {
        find_and_round<A, F>(l, q, t, blocks);
        return;
    }
    if (q->dbias != NULL) {
        cuda_launch_column_sum(l, q->dbias, q->in, q->type, q->n_rows, q->n_cols, q->runs, NULL);
    }
    LAUNCH(l, (round_noting_kernel<A, F>), blocks, TILE_THREADS, 0, q->rows, q->columns, known_of(q), q->in,
           t);
    LAUNCH_EARLY(l, (round_again_kernel<A, F>), blocks, TILE_THREADS, q->rows, q->columns, q->scale,
                 known_of(q), q->in, t);
}

void cuda_launch_quantize(const launch *l, const launch_quantize *q)
{
    if (q->format == LAUNCH_E4M3) {
        BY_TYPE(q->type, quantize<A, e4m3>(l, q));
    } else {
        BY_TYPE(q->type, quantize<A, e5m2>(l, q));
    }
}

int cuda_launch_fp8_is_possible(void)
{
    cudaFuncAttributes attributes = {};
    bool possible = cudaFuncGetAttributes(&attributes, round_kernel<bf16, e4m3>) == cudaSuccess &&
                    attributes.ptxVersion >= 89;
    cudaGetLastError(); /* forgets a failure */
    return possible;
}
