/* Products in which a row has the same bits whatever rows are next to it: C = A W^T + bias, with both
 * factors stored along the inner dimension.
 *
 * The rule: each element of C is the sum of a vector of partial sums, in the order of the inner dimension,
 * whatever block of rows and columns it is computed in.  A library's products have no such rule: their
 * order of sums depends on the number of rows.  With few rows it is bound by memory: W is read once, and
 * prefetched in the order of memory. */
#include "ops/cpu/gemm_tiles.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/tile_vector.h"

/* Blocks of C whose accumulators fill 32 or 16 vector registers, with registers left for the factors.  TALL
 * rows or less are one block, so that W goes through the registers once.  Of int8 a sum needs a register for
 * the product, too, and W is widened for each block, so 16 registers have more rows of fewer columns. */
enum {
    ROWS = TILE_VECTOR == 16 ? 4 : 3,
    COLS = TILE_VECTOR == 16 ? 6 : 4,
    TALL_ROWS = TILE_VECTOR == 16 ? 8 : 3,
    TALL_COLS = TILE_VECTOR == 16 ? 3 : 4,
    INT8_ROWS = TILE_VECTOR == 16 ? 4 : 5,
    INT8_COLS = TILE_VECTOR == 16 ? 6 : 2,
    MOST_ROWS = 8,
};

/* The distance at which memory is prefetched: some 400 ns at its rate. */
enum { LINE_BYTES = 64, AHEAD_BYTES = 16384 };

/* The storage of the factors, a constant of each function. */
enum form {
    FORM_F32,
    FORM_BF16,
    FORM_BF16_W, /* W alone; A is fp32 */
    FORM_PAIRS,  /* bf16 that the processor multiplies */
    FORM_INT8,   /* A is integers of 16 bits and W of 8, whose sums are exact */
};

typedef int8_t tile_bytes __attribute__((vector_size(2 * TILE_VECTOR), aligned(1), may_alias));
typedef int16_t tile_shorts __attribute__((vector_size(2 * TILE_VECTOR * sizeof(int16_t))));

static inline int64_t step_of(const enum form form)
{
    return form == FORM_PAIRS || form == FORM_INT8 ? 2 * TILE_VECTOR : TILE_VECTOR;
}

/* Bytes of n elements of A. */
static inline int64_t bytes_of(int64_t n, const enum form form)
{
    return n * (int64_t)(form == FORM_F32 || form == FORM_BF16_W ? sizeof(float) : sizeof(uint16_t));
}

static inline int64_t w_bytes_of(int64_t n, const enum form form)
{
    return form == FORM_INT8 ? n : n * (int64_t)(form == FORM_F32 ? sizeof(float) : sizeof(uint16_t));
}

/* Rows of an odd number of bf16 begin at any even address, so nothing is said of alignment.  Read through a
 * pointer: a vector's memcpy goes through the stack in halves in GCC 12's code for AVX2, and the load after
 * it waits for both stores. */
typedef float tile_anywhere __attribute__((vector_size(TILE_VECTOR * sizeof(float)), aligned(1), may_alias));

static inline tile_vector load(const char *p, const enum form form)
{
    return form == FORM_BF16 ? tile_from_bf16(p) : (tile_vector) * (const tile_anywhere *)p;
}

#if defined(__AVX512BW__)
static inline tile_vector load_bytes(const char *p)
{
    return (tile_vector)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p));
}

#elif defined(__AVX2__)
static inline tile_vector load_bytes(const char *p)
{
    return (tile_vector)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}

#else
static inline tile_vector load_bytes(const char *p)
{
    return (tile_vector) __builtin_convertvector(*(const tile_bytes *)p, tile_shorts);
}

#endif

static inline tile_vector load_w(const char *p, const enum form form)
{
    return form == FORM_INT8 ? load_bytes(p) : form == FORM_BF16_W ? tile_from_bf16(p) : load(p, form);
}

/* The last elements of a row, then zeros. */
static __attribute__((noinline)) tile_vector load_rest(const char *p, int64_t n, const enum form form)
{
    float rest[TILE_VECTOR] = {0};
    memcpy(rest, p, (size_t)bytes_of(n, form));
    return load((const char *)rest, form);
}

static __attribute__((noinline)) tile_vector load_rest_w(const char *p, int64_t n, const enum form form)
{
    float rest[TILE_VECTOR] = {0};
    memcpy(rest, p, (size_t)w_bytes_of(n, form));
    return load_w((const char *)rest, form);
}

/* sum + a b of pairs of 16 bits, in sums of 32. */
#if defined(__AVX512BW__)
static inline tile_ints add_integers(tile_ints sum, tile_vector a, tile_vector b)
{
    return sum + (tile_ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
static inline tile_ints add_integers(tile_ints sum, tile_vector a, tile_vector b)
{
    return sum + (tile_ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
#else
static inline tile_ints add_integers(tile_ints sum, tile_vector a, tile_vector b)
{
    tile_ints low_a = (tile_ints)((tile_bits)a << 16) >> 16, low_b = (tile_ints)((tile_bits)b << 16) >> 16;
    tile_ints high_a = (tile_ints)a >> 16, high_b = (tile_ints)b >> 16;
    return sum + low_a * low_b + high_a * high_b;
}
#endif

static inline tile_vector multiply_add(tile_vector sum, tile_vector a, tile_vector b, const enum form form)
{
#if defined(__AVX512BF16__)
    if (form == FORM_PAIRS) {
        return (tile_vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
    }
#endif
    (void)form;
    return sum + a * b;
}

/* Prefetches a step's part of W from `line` on, AHEAD_BYTES after a block's columns.  Lines are prefetched in
 * their order: the columns begin in different pages, and a line of each at a time reaches half the rate of
 * memory (measured on Zen 4).  One row finds them in the first cache, which several rows need for
 * themselves. */
static inline __attribute__((always_inline)) void ask_ahead(const char *line, const int n_rows,
                                                            const int n_cols, const enum form form)
{
    const int n = n_cols * (int)w_bytes_of(step_of(form), form);
#pragma GCC unroll 8
    for (int i = 0; i < n; i += LINE_BYTES) {
        if (n_rows == 1) {
            __builtin_prefetch(line + i, 0, 3);
        } else {
            __builtin_prefetch(line + i, 0, 2);
        }
    }
}

/* The partial sums of an element, in one of two types, so that either stays in registers. */
struct sums {
    tile_vector of_floats;
    tile_ints of_integers;
};

static inline __attribute__((always_inline)) void add_product(struct sums *s, tile_vector a, tile_vector b,
                                                              const enum form form)
{
    if (form == FORM_INT8) {
        s->of_integers = add_integers(s->of_integers, a, b);
    } else {
        s->of_floats = multiply_add(s->of_floats, a, b, form);
    }
}

/* ---- the ends of sums ----
 *
 * The lanes of an element's vector of sums are added in halves, until one is left: lane i and lane i + 8, and
 * so on. */

#if defined(__AVX2__)
static inline tile_vector lanes_of(const struct sums *s, const enum form form)
{
    if (form == FORM_INT8) {
        return (tile_vector)s->of_integers;
    }
    return s->of_floats;
}

#endif

#if defined(__AVX512F__)
static inline tile_vector add_lanes(__m512 a, __m512 b, const enum form form)
{
    if (form == FORM_INT8) {
        return (tile_vector)((tile_ints)a + (tile_ints)b);
    }
    return (tile_vector)(a + b);
}

/* Each step takes two vectors, and leaves one with the sums of the halves of both. */
static inline tile_vector add_eights(tile_vector a, tile_vector b, const enum form form)
{
    return add_lanes(_mm512_shuffle_f32x4((__m512)a, (__m512)b, 0x44),
                     _mm512_shuffle_f32x4((__m512)a, (__m512)b, 0xee), form);
}

static inline tile_vector add_fours(tile_vector a, tile_vector b, const enum form form)
{
    return add_lanes(_mm512_shuffle_f32x4((__m512)a, (__m512)b, 0x88),
                     _mm512_shuffle_f32x4((__m512)a, (__m512)b, 0xdd), form);
}

static inline tile_vector add_twos(tile_vector a, tile_vector b, const enum form form)
{
    return add_lanes(_mm512_shuffle_ps((__m512)a, (__m512)b, 0x44),
                     _mm512_shuffle_ps((__m512)a, (__m512)b, 0xee), form);
}

/* Sums of n vectors, at most four, in four lanes each: those of s[i] are block i of the result. */
static inline __attribute__((always_inline)) tile_vector fours_of(const struct sums *s, const int n,
                                                                  const enum form form)
{
    const tile_vector none = {0};
    tile_vector first = add_eights(lanes_of(&s[0], form), n > 1 ? lanes_of(&s[1], form) : none, form);
    tile_vector second =
        n > 2 ? add_eights(lanes_of(&s[2], form), n > 3 ? lanes_of(&s[3], form) : none, form) : none;
    return add_fours(first, second, form);
}

/* The sums of n vectors, at most 8, in the first lanes. */
static inline __attribute__((always_inline)) tile_vector sums_of(const struct sums *s, const int n,
                                                                 const enum form form)
{
    const __m512i order = _mm512_set_epi32(14, 10, 6, 2, 14, 10, 6, 2, 14, 10, 6, 2, 12, 8, 4, 0);
    tile_vector low = fours_of(s, n < 4 ? n : 4, form), high = n > 4 ? fours_of(s + 4, n - 4, form) : low;
    tile_vector twos = add_twos(low, high, form);
    tile_vector ones = add_lanes((__m512)twos, _mm512_permute_ps((__m512)twos, 0xb1), form);
    ones = (tile_vector)_mm512_permutexvar_ps(order, (__m512)ones);
    if (form == FORM_INT8) {
        return (tile_vector)_mm512_cvtepi32_ps((__m512i)ones);
    }
    return ones;
}

/* The masked lanes of v as numbers of C. */
static inline void put(const struct gemm *g, int64_t at, tile_vector v, __mmask16 mask)
{
    if (g->c_dtype == DTYPE_F32) {
        _mm512_mask_storeu_ps((float *)g->c + at, mask, (__m512)v);
        return;
    }
    uint16_t halves[TILE_VECTOR];
    tile_store_along(halves, v);
    _mm256_mask_storeu_epi16((uint16_t *)g->c + at, mask, _mm256_loadu_si256((const __m256i *)halves));
}

/* n elements of a row of C, a constant. */
static inline __attribute__((always_inline)) void
store(const struct gemm *g, int64_t row, int64_t col, const struct sums *s, const int n, const enum form form)
{
    const __mmask16 mask = (__mmask16)((1U << n) - 1);
    __m512 v = (__m512)sums_of(s, n, form);
    __m512 bias = g->bias == NULL ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, g->bias + col);
    if (form == FORM_INT8) { /* one rounding */
        __m512 scales = _mm512_maskz_loadu_ps(mask, g->b_scales + col);
        v = _mm512_fmadd_ps(v, _mm512_mul_ps(_mm512_set1_ps(g->a_scales[row]), scales), bias);
    } else {
        v = _mm512_add_ps(v, bias);
    }
    put(g, row * g->c_stride + col, (tile_vector)v, mask);
}
#elif defined(__AVX2__)
static inline tile_vector add_lanes(__m256 a, __m256 b, const enum form form)
{
    if (form == FORM_INT8) {
        return (tile_vector)((tile_ints)a + (tile_ints)b);
    }
    return (tile_vector)(a + b);
}

/* Each step takes two vectors, and leaves one with the sums of the halves of both. */
static inline tile_vector add_fours(tile_vector a, tile_vector b, const enum form form)
{
    return add_lanes(_mm256_permute2f128_ps((__m256)a, (__m256)b, 0x20),
                     _mm256_permute2f128_ps((__m256)a, (__m256)b, 0x31), form);
}

static inline tile_vector add_twos(tile_vector a, tile_vector b, const enum form form)
{
    return add_lanes(_mm256_shuffle_ps((__m256)a, (__m256)b, 0x44),
                     _mm256_shuffle_ps((__m256)a, (__m256)b, 0xee), form);
}

/* The sums of n vectors, at most 4, in the first lanes. */
static inline __attribute__((always_inline)) __m128 sums_of(const struct sums *s, const int n,
                                                            const enum form form)
{
    const tile_vector none = {0};
    tile_vector even = add_fours(lanes_of(&s[0], form), n > 2 ? lanes_of(&s[2], form) : none, form),
                odd = none;
    if (n > 1) {
        odd = add_fours(lanes_of(&s[1], form), n > 3 ? lanes_of(&s[3], form) : none, form);
    }
    tile_vector twos = add_twos(even, odd, form);
    __m256 ones = (__m256)add_lanes((__m256)twos, _mm256_permute_ps((__m256)twos, 0xb1), form);
    __m128 sums = _mm_shuffle_ps(_mm256_castps256_ps128(ones), _mm256_extractf128_ps(ones, 1), 0x88);
    return form == FORM_INT8 ? _mm_cvtepi32_ps((__m128i)sums) : sums;
}

/* n numbers, 1, 2 or 4, then zeros. */
static inline __m128 load_few(const float *p, const int n)
{
    return n == 1   ? _mm_load_ss(p)
           : n == 2 ? _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)p))
                    : _mm_loadu_ps(p);
}

/* Four numbers as bf16 (core/dtype.h, bf16_from_f32). */
static inline uint64_t bf16_of(__m128 v)
{
    __m128i bits = (__m128i)v, upper = _mm_srli_epi32(bits, 16);
    __m128i even = _mm_add_epi32(_mm_set1_epi32(0x7fff), _mm_and_si128(upper, _mm_set1_epi32(1)));
    __m128i rounded = _mm_srli_epi32(_mm_add_epi32(bits, even), 16),
            nan = _mm_or_si128(upper, _mm_set1_epi32(0x40));
    __m128i halves = _mm_blendv_epi8(rounded, nan, (__m128i)_mm_cmpunord_ps(v, v));
    return (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi32(halves, halves));
}

/* n elements of a row of C, a constant: 1, 2 or 4. */
static inline __attribute__((always_inline)) void
store(const struct gemm *g, int64_t row, int64_t col, const struct sums *s, const int n, const enum form form)
{
    __m128 v = sums_of(s, n, form), bias = g->bias == NULL ? _mm_setzero_ps() : load_few(g->bias + col, n);
    if (form == FORM_INT8) { /* one rounding */
        __m128 scales = load_few(g->b_scales + col, n);
        v = _mm_fmadd_ps(v, _mm_mul_ps(_mm_set1_ps(g->a_scales[row]), scales), bias);
    } else {
        v = _mm_add_ps(v, bias);
    }
    if (g->c_dtype == DTYPE_F32) {
        memcpy((float *)g->c + row * g->c_stride + col, &v, (size_t)n * sizeof(float));
    } else {
        uint64_t halves = bf16_of(v);
        memcpy((uint16_t *)g->c + row * g->c_stride + col, &halves, (size_t)n * sizeof(uint16_t));
    }
}
#else
static inline float sum_of_integers(tile_ints v)
{
    for (int half = TILE_VECTOR / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            v[i] += v[i + half];
        }
    }
    return (float)v[0];
}

static inline float sum_of_floats(tile_vector v)
{
    for (int half = TILE_VECTOR / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            v[i] += v[i + half];
        }
    }
    return v[0];
}

/* n elements of a row of C, a constant. */
static inline __attribute__((always_inline)) void
store(const struct gemm *g, int64_t row, int64_t col, const struct sums *s, const int n, const enum form form)
{
#    pragma GCC unroll 8
    for (int c = 0; c < n; c++) {
        float bias = g->bias == NULL ? 0.0f : g->bias[col + c], value;
        if (form == FORM_INT8) { /* one rounding, whatever code the compiler makes of the blocks */
            float scale = g->a_scales[row] * g->b_scales[col + c];
            value = __builtin_fmaf(sum_of_integers(s[c].of_integers), scale, bias);
        } else {
            value = sum_of_floats(s[c].of_floats) + bias;
        }
        if (g->c_dtype == DTYPE_F32) {
            ((float *)g->c)[row * g->c_stride + col + c] = value;
        } else {
            ((uint16_t *)g->c)[row * g->c_stride + col + c] = bf16_from_f32(value);
        }
    }
}
#endif

/* A step of the inner dimension of n_rows x n_cols elements.  One side stays in registers, and a vector of
 * the other one at a time.  Of 16 registers the shorter side gets its own: 3 x 4 elements need 16 so, and 17
 * the other way (measured for AVX2 on Zen 4: prompts of GPT-2 124M in fp32 are read 1.8 times as fast).
 * 32 registers are enough for either, and W, which is the same for all rows, stays. */
static inline __attribute__((always_inline)) void add_step(struct sums sums[MOST_ROWS][COLS], const char *a,
                                                           int64_t a_stride, const char *b, int64_t b_stride,
                                                           const int n_rows, const int n_cols,
                                                           const enum form form)
{
    if (TILE_VECTOR < 16 && n_rows < n_cols) {
        tile_vector held[ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; r++) {
            held[r] = load(a + r * a_stride, form);
        }
#pragma GCC unroll 8
        for (int c = 0; c < n_cols; c++) {
            tile_vector w = load_w(b + c * b_stride, form);
#pragma GCC unroll 8
            for (int r = 0; r < n_rows; r++) {
                add_product(&sums[r][c], held[r], w, form);
            }
        }
        return;
    }
    tile_vector held[COLS];
#pragma GCC unroll 8
    for (int c = 0; c < n_cols; c++) {
        held[c] = load_w(b + c * b_stride, form);
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++) {
        tile_vector v = load(a + r * a_stride, form);
#pragma GCC unroll 8
        for (int c = 0; c < n_cols; c++) {
            add_product(&sums[r][c], v, held[c], form);
        }
    }
}

/* Elements [row, row + n_rows) x [col, col + n_cols) of C, both constants.  `ahead`: prefetches the columns
 * of W after these. */
static inline __attribute__((always_inline)) void block(const struct gemm *g, int64_t row, int64_t col,
                                                        bool ahead, const int n_rows, const int n_cols,
                                                        const enum form form)
{
    struct sums sums[MOST_ROWS][COLS];
    int64_t a_stride = bytes_of(g->a_stride, form), b_stride = w_bytes_of(g->b_stride, form);
    const char *a = (const char *)g->a + row * a_stride, *b = (const char *)g->b + col * b_stride;
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++) {
#pragma GCC unroll 8
        for (int c = 0; c < n_cols; c++) {
            sums[r][c] = (struct sums){{0}, {0}};
        }
    }
    int64_t n_steps = g->k / step_of(form), rest = g->k % step_of(form);
    const char *line = b + AHEAD_BYTES;
    for (int64_t l = 0; l < n_steps; l++) {
        if (ahead) {
            ask_ahead(line, n_rows, n_cols, form);
            line += n_cols * w_bytes_of(step_of(form), form);
        }
        add_step(sums, a, a_stride, b, b_stride, n_rows, n_cols, form);
        a += bytes_of(step_of(form), form);
        b += w_bytes_of(step_of(form), form);
    }
    for (int r = 0; r < n_rows && rest > 0; r++) {
        tile_vector v = load_rest(a + r * a_stride, rest, form);
        for (int c = 0; c < n_cols; c++) {
            add_product(&sums[r][c], v, load_rest_w(b + c * b_stride, rest, form), form);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++) {
        store(g, row + r, col, sums[r], n_cols, form);
    }
}

/* The last n rows, at most n_rows, of n_cols columns, both constants. */
static inline __attribute__((always_inline)) void last_rows(const struct gemm *g, int64_t row, int64_t n,
                                                            int64_t col, const int n_rows, const int n_cols,
                                                            const enum form form)
{
#pragma GCC unroll 8
    for (int r = 1; r <= n_rows; r++) {
        if (n == r) {
            block(g, row, col, row == 0, r, n_cols, form);
        }
    }
}

/* Computes all rows of n_cols columns, in blocks of n_rows, both constants.  The first block reads W from
 * memory. */
static inline __attribute__((always_inline)) void columns(const struct gemm *g, int64_t col, const int n_rows,
                                                          const int n_cols, const enum form form)
{
    int64_t row = 0;
    for (; row + n_rows < g->m; row += n_rows) {
        block(g, row, col, row == 0, n_rows, n_cols, form);
    }
    last_rows(g, row, g->m - row, col, n_rows, n_cols, form);
}

/* Computes all rows of the columns from `col`, which do not fill a block. */
static __attribute__((noinline)) void last_columns(const struct gemm *g, int64_t col, const enum form form)
{
    for (; col < g->n; col++) {
        columns(g, col, ROWS, 1, form);
    }
}

static inline __attribute__((always_inline)) void product_by(const struct gemm *g, const int n_rows,
                                                             const int n_cols, const enum form form)
{
    int64_t col = 0;
    for (; col + n_cols <= g->n; col += n_cols) {
        columns(g, col, n_rows, n_cols, form);
    }
    last_columns(g, col, form);
}

/* The products of a form.  Each shape of blocks is a function of its own, which has the registers for itself:
 * in one function GCC 12 keeps vectors of the others in them. */
#define ROW(name, form)                                                                                      \
    static __attribute__((noinline)) void name##_row(const struct gemm *g)                                   \
    {                                                                                                        \
        product_by(g, 1, COLS, form);                                                                        \
    }

#define PRODUCT(name, form, n_rows, n_cols)                                                                  \
    ROW(name, form)                                                                                          \
    static __attribute__((noinline)) void name##_tall(const struct gemm *g)                                  \
    {                                                                                                        \
        product_by(g, TALL_ROWS, TALL_COLS, form);                                                           \
    }                                                                                                        \
    static __attribute__((noinline)) void name##_blocks(const struct gemm *g)                                \
    {                                                                                                        \
        product_by(g, n_rows, n_cols, form);                                                                 \
    }                                                                                                        \
    static void name##_product(const struct gemm *g)                                                         \
    {                                                                                                        \
        if (g->m == 1) {                                                                                     \
            name##_row(g);                                                                                   \
        } else if (g->m > ROWS && g->m <= TALL_ROWS) {                                                       \
            name##_tall(g);                                                                                  \
        } else {                                                                                             \
            name##_blocks(g);                                                                                \
        }                                                                                                    \
    }

PRODUCT(f32, FORM_F32, ROWS, COLS)
PRODUCT(bf16_w, FORM_BF16_W, ROWS, COLS)
PRODUCT(pairs, FORM_PAIRS, ROWS, COLS)
PRODUCT(int8, FORM_INT8, INT8_ROWS, INT8_COLS)
ROW(bf16, FORM_BF16) /* several rows are widened */

/* bf16 of a processor that multiplies none: A becomes fp32, and W too if several blocks of rows read it, a
 * block of its columns at a time.  The sums are those of FORM_BF16. */
static void widened_product(const struct gemm *tile, float *lane)
{
    const struct gemm_convert *convert = gemm_convert();
    struct gemm g = *tile;
    float *w = lane + g.m * g.k;
    convert->from_bf16(lane, tile->a, tile->a_stride, g.m, g.k);
    g.a = lane;
    g.a_stride = g.k;
    if (g.m <= TALL_ROWS) {
        bf16_w_product(&g);
        return;
    }
    g.b = w;
    g.b_stride = g.k;
    for (int64_t col = 0; col < tile->n; col += COLS) {
        g.n = tile->n - col < COLS ? tile->n - col : COLS;
        g.c = (void *)gemm_element(tile->c, dtype_bytes(g.c_dtype), col);
        g.bias = tile->bias == NULL ? NULL : tile->bias + col;
        convert->from_bf16(w, (const uint16_t *)tile->b + col * tile->b_stride, tile->b_stride, g.n, g.k);
        f32_product(&g);
    }
}

/* One row is bound by memory, and needs no scratch. */
static bool is_widened(const struct gemm *tile)
{
    return tile->b_scales == NULL && tile->ab_dtype == DTYPE_BF16 && !TILE_PAIRS && tile->m > 1;
}

static bool rows_open(void)
{
    return true;
}

static bool rows_can(enum dtype ab_dtype, enum dtype c_dtype)
{
    (void)ab_dtype, (void)c_dtype;
    return true;
}

static const void *rows_prepare(const struct gemm *tile, size_t *lane_bytes)
{
    *lane_bytes = is_widened(tile) ? (size_t)((tile->m + COLS) * tile->k) * sizeof(float) : 0;
    return tile->b_transposed && !tile->a_transposed && !tile->accumulate ? "rows" : NULL;
}

static bool rows_tile(const void *handle, const struct gemm *tile, void *lane)
{
    (void)handle;
    if (tile->b_scales != NULL) {
        int8_product(tile);
    } else if (tile->ab_dtype == DTYPE_F32) {
        f32_product(tile);
    } else if (TILE_PAIRS) {
        pairs_product(tile);
    } else if (is_widened(tile)) {
        widened_product(tile, lane);
    } else {
        bf16_row(tile);
    }
    return true;
}

KERNEL_FILL(gemm_rows, struct gemm_backend)
{
    *t = (struct gemm_backend){
        .name = "rows", .open = rows_open, .can = rows_can, .prepare = rows_prepare, .tile = rows_tile};
}
