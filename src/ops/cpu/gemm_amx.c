/* Products by rows alone (gemm_rows_kernels.c) on processors with AMX: 16 columns of C for 16 rows of A an
 * instruction.
 *
 * A tile of W is 16 of its rows as they are stored, 64 bytes of each.  The other factor of the instruction is
 * A turned over, 4 bytes of 16 rows side by side, so A is packed first: once a product, since every tile of
 * columns reads all of it.  An element of C is one sum in the order of the inner dimension, whatever rows and
 * columns are next to it, so a row has the same bits alone. */
#define _GNU_SOURCE
#include "ops/cpu/gemm_backend.h"

#include "ops/cpu/cpu_isa.h"
#include "ops/workspace.h"

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <immintrin.h>
#    include <string.h>
#    include <sys/syscall.h>
#    include <unistd.h>

#    define AMX __attribute__((target("amx-tile,amx-bf16,amx-int8,avx512bf16,avx512bw,avx512dq,avx512vl")))

/* A tile register has SIDE rows of LINE bytes. */
enum { SIDE = WORKSPACE_PACKED_ROWS, LINE = 64, TILE_BYTES = SIDE * LINE };

/* ---- whether it is there ---- */

/* Linux lends the registers to a process that asks for them. */
static bool ask_for_registers(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

bool gemm_amx_open(void)
{
    enum { BF16 = 1 << 22, TILE = 1 << 24, INT8 = 1 << 25, ALL = BF16 | TILE | INT8 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return cpu_isa_best() == CPU_ISA_avx512bf16 && !cpu_isa_is_limited() &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & ALL) == ALL && ask_for_registers();
}

/* ---- A, packed ---- */

/* words[r][i], 16 x 16 of 32 bits, become words[i][r]: each step exchanges the halves of n words that are on
 * the wrong side of rows n apart. */
AMX static inline void turn(__m512i words[SIDE])
{
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#    pragma GCC unroll 4
    for (int step = 0; step < 4; step++) {
        const int n = SIDE / 2 >> step;
        /* lanes that the upper and the lower row of a pair take: lane i, or lane i -+ n of the other */
        __mmask16 high = _mm512_test_epi32_mask(lanes, _mm512_set1_epi32(n));
        __m512i above = _mm512_mask_add_epi32(lanes, high, lanes, _mm512_set1_epi32(SIDE - n));
        __m512i below = _mm512_add_epi32(above, _mm512_set1_epi32(n));
#    pragma GCC unroll 16
        for (int r = 0; r < SIDE; r++) {
            if ((r & n) == 0) {
                __m512i a = words[r], b = words[r + n];
                words[r] = _mm512_permutex2var_epi32(a, above, b);
                words[r + n] = _mm512_permutex2var_epi32(a, below, b);
            }
        }
    }
}

/* The first bytes of a line, then zeros. */
AMX static inline __m512i load_line(const char *p, int64_t n)
{
    __mmask64 mask = n >= LINE ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
    return _mm512_maskz_loadu_epi8(mask, p);
}

/* A line of each row: words of SIDE rows side by side; in a block of one row, as it is. */
AMX static inline void store_words(char *packed, __m512i words[SIDE], int64_t block)
{
    if (block == 1) {
        _mm512_storeu_si512(packed, words[0]);
        return;
    }
    turn(words);
#    pragma GCC unroll 16
    for (int r = 0; r < SIDE; r++) {
        _mm512_storeu_si512(packed + r * LINE, words[r]);
    }
}

AMX void gemm_amx_pack_bf16(void *packed, const void *rows, int64_t stride, int64_t n, int64_t k,
                            int64_t block)
{
    int64_t bytes = 2 * k, row_bytes = 2 * stride;
    for (int64_t at = 0; at < bytes; at += LINE) {
        __m512i words[SIDE];
#    pragma GCC unroll 16
        for (int r = 0; r < SIDE; r++) {
            words[r] = r < n ? load_line((const char *)rows + r * row_bytes + at, bytes - at)
                             : _mm512_setzero_si512();
        }
        store_words((char *)packed + at * block, words, block);
    }
}

/* The upper bytes of LINE integers of 16 bits, rounded down, or the lower ones, which have no sign. */
AMX static inline __m512i bytes_of(const int16_t *v, const bool upper)
{
    __m512i a = _mm512_loadu_si512(v), b = _mm512_loadu_si512(v + LINE / 2);
    if (upper) {
        a = _mm512_srai_epi16(a, 8);
        b = _mm512_srai_epi16(b, 8);
    }
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(a)), _mm512_cvtepi16_epi8(b), 1);
}

/* n rows as bytes of a kind. */
AMX static void pack_bytes(char *packed, const int16_t *rows, int64_t stride, int64_t n, int64_t block,
                           const bool upper)
{
    for (int64_t at = 0; at < stride; at += LINE) {
        __m512i words[SIDE];
#    pragma GCC unroll 16
        for (int r = 0; r < SIDE; r++) {
            words[r] = r < n ? bytes_of(rows + r * stride + at, upper) : _mm512_setzero_si512();
        }
        store_words(packed + at * block, words, block);
    }
}

AMX void gemm_amx_pack_int16(void *packed, const int16_t *rows, int64_t stride, int64_t n, int64_t block)
{
    pack_bytes(packed, rows, stride, n, block, true);
    pack_bytes((char *)packed + stride * block, rows, stride, n, block, false);
}

/* ---- a block of C ---- */

/* Two tiles of rows of W with two tiles of A: two blocks of its rows in bf16, or the upper and the lower
 * bytes of one. */
struct factors {
    const char *w, *a[2];
    int64_t w_stride, a_stride; /* bytes between rows of a tile */
    int64_t bytes;              /* bytes of a row of W */
    int64_t ahead;              /* rows of W after these that are prefetched, in the order of memory */
};

/* Sums [of a tile of W][of a tile of A], turned over: those of SIDE columns of C side by side are a row of
 * it. */
struct sums {
    float of[2][2][SIDE][SIDE];
};

/* Registers 0 to 3 are sums, 4 and 5 of W, 6 and 7 of A: w_rows rows of W with a_rows of A. */
AMX static void configure(int w_rows, int a_rows)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        bool of_w = i == 4 || i == 5;
        shape.rows[i] = (uint8_t)(i >= 6 ? SIDE : w_rows);
        shape.row_bytes[i] = (uint16_t)(of_w ? LINE : 4 * a_rows);
    }
    _tile_loadconfig(&shape);
}

/* The end of rows of W, then zeros; what follows a row in memory may be anything. */
AMX static void copy_rest(char rest[2 * SIDE][LINE], const struct factors *f, int64_t at, int64_t n)
{
    for (int64_t r = 0; r < n; r++) {
        _mm512_storeu_si512(rest[r], load_line(f->w + r * f->w_stride + at, f->bytes - at));
    }
    __asm__ volatile("" ::: "memory"); /* tiles are loaded by instructions that the compiler does not know */
}

AMX static inline __attribute__((always_inline)) void add_products(const char *w, int64_t w_stride,
                                                                   const char *a0, const char *a1,
                                                                   int64_t a_stride, const int n_w,
                                                                   const int n_a, const bool int8)
{
    _tile_loadd(6, a0, a_stride);
    _tile_loadd(4, w, w_stride);
    if (n_a == 2) {
        _tile_loadd(7, a1, a_stride);
    }
    if (n_w == 2) {
        _tile_loadd(5, w + SIDE * w_stride, w_stride);
    }
    if (int8) { /* the lower bytes have no sign */
        _tile_dpbssd(0, 4, 6);
        _tile_dpbsud(1, 4, 7);
        if (n_w == 2) {
            _tile_dpbssd(2, 5, 6);
            _tile_dpbsud(3, 5, 7);
        }
        return;
    }
    _tile_dpbf16ps(0, 4, 6);
    if (n_a == 2) {
        _tile_dpbf16ps(1, 4, 7);
    }
    if (n_w == 2) {
        _tile_dpbf16ps(2, 5, 6);
    }
    if (n_w == 2 && n_a == 2) {
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* Asks for n lines from p on. */
static inline void ask(const char *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        __builtin_prefetch(p + i * LINE, 0, 2);
    }
}

/* The sums of `rows` rows of W, which are n_w tiles, with n_a tiles of A. */
AMX static inline __attribute__((always_inline)) void
block(struct sums *s, const struct factors *f, int64_t rows, const int n_w, const int n_a, const bool int8)
{
    char rest[2 * SIDE][LINE] __attribute__((aligned(LINE)));
    int64_t a_step = f->a_stride * SIDE, whole = f->bytes / LINE * LINE;
    const char *a0 = f->a[0], *a1 = f->a[1], *next = f->w + rows * f->w_stride;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t at = 0; at < whole; at += LINE) {
        ask(next + f->ahead * at, f->ahead);
        add_products(f->w + at, f->w_stride, a0, a1, f->a_stride, n_w, n_a, int8);
        a0 += a_step;
        a1 += a_step;
    }
    if (whole < f->bytes) {
        copy_rest(rest, f, whole, rows);
        add_products(rest[0], LINE, a0, a1, f->a_stride, n_w, n_a, int8);
    }
    _tile_stored(0, s->of[0][0], f->a_stride);
    _tile_stored(1, s->of[0][1], f->a_stride);
    _tile_stored(2, s->of[1][0], f->a_stride);
    _tile_stored(3, s->of[1][1], f->a_stride);
}

/* ---- what becomes of the sums ---- */

/* n columns of a row of C. */
AMX static inline void store(const struct gemm *g, int64_t row, int64_t col, int64_t n, __m512 v)
{
    __mmask16 mask = (__mmask16)((1U << n) - 1);
    __m512 bias = g->bias == NULL ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, g->bias + col);
    if (g->b_scales == NULL) {
        v = _mm512_add_ps(v, bias);
    } else {
        __m512 scales = _mm512_maskz_loadu_ps(mask, g->b_scales + col);
        v = _mm512_fmadd_ps(v, _mm512_mul_ps(_mm512_set1_ps(g->a_scales[row]), scales), bias);
    }
    if (g->c_dtype == DTYPE_F32) {
        _mm512_mask_storeu_ps((float *)g->c + row * g->c_stride + col, mask, v);
    } else {
        _mm256_mask_storeu_epi16((uint16_t *)g->c + row * g->c_stride + col, mask,
                                 (__m256i)_mm512_cvtneps_pbh(v));
    }
}

/* Vectors of sums of SIDE columns, one for each row of a block of A. */
AMX static inline void turn_sums(__m512i words[SIDE], const float *sums, int64_t block)
{
    if (block == 1) {
        words[0] = _mm512_loadu_si512(sums);
        return;
    }
#    pragma GCC unroll 16
    for (int i = 0; i < SIDE; i++) {
        words[i] = _mm512_loadu_si512(sums + i * SIDE);
    }
    turn(words);
}

/* Rows [row, row + n_rows) of n columns, whose sums are tile `part` of A; for int8 those of the upper bytes,
 * next to those of the lower ones. */
AMX static void store_sums(const struct gemm *g, float of[2][SIDE][SIDE], int part, int64_t row,
                           int64_t n_rows, int64_t col, int64_t n)
{
    __m512i words[SIDE] = {0}, lower[SIDE] = {0};
    turn_sums(words, of[part][0], g->a_block);
    if (g->b_scales != NULL) {
        turn_sums(lower, of[1][0], g->a_block);
    }
    for (int64_t r = 0; r < n_rows; r++) {
        __m512 v = (__m512)words[r];
        if (g->b_scales != NULL) {
            v = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(words[r], 8), lower[r]));
        }
        store(g, row + r, col, n, v);
    }
}

/* ---- a tile of C ---- */

/* Computes all rows of n columns from `col`, which are n_w tiles of W. */
AMX static inline __attribute__((always_inline)) void columns(const struct gemm *g, int64_t col, int64_t n,
                                                              const int n_w, const bool int8)
{
    const int64_t packed = 2 * g->a_stride * g->a_block; /* bytes of a block of A */
    const int64_t w_stride = g->b_stride * (int8 ? 1 : 2);
    struct factors f = {.w = (const char *)g->b + col * w_stride,
                        .w_stride = w_stride,
                        .a_stride = 4 * g->a_block,
                        .bytes = g->k * (int8 ? 1 : 2)};
    struct sums s;
    for (int64_t row = 0; row < g->m;) {
        bool two = !int8 && g->m - row > SIDE;
        f.ahead = row > 0 ? 0 : g->n - col - n < n ? g->n - col - n : n;
        f.a[0] = (const char *)g->a + row / SIDE * packed;
        f.a[1] = f.a[0] + (int8 ? packed / 2 : packed);
        if (two || int8) {
            block(&s, &f, n, n_w, 2, int8);
        } else {
            block(&s, &f, n, n_w, 1, int8);
        }
        for (int part = 0; part < (two ? 2 : 1); part++) {
            int64_t left = g->m - row, n_rows = left < SIDE ? left : SIDE;
            for (int t = 0; t < n_w; t++) {
                int64_t here = n - t * SIDE < SIDE ? n - t * SIDE : SIDE;
                store_sums(g, s.of[t], part, row, n_rows, col + t * SIDE, here);
            }
            row += n_rows;
        }
    }
}

AMX static inline __attribute__((always_inline)) void product(const struct gemm *g, const bool int8)
{
    const int a_rows = (int)g->a_block;
    int64_t col = 0, first = g->n < 2 * SIDE ? g->n : 2 * SIDE;
    configure(SIDE, a_rows);
    ask(g->b, first * g->b_stride * (int8 ? 1 : 2) / LINE); /* the others while those before them are read */
    for (; g->n - col >= 2 * SIDE; col += 2 * SIDE) {
        columns(g, col, 2 * SIDE, 2, int8);
    }
    for (; col < g->n; col += SIDE) {
        int64_t n = g->n - col < SIDE ? g->n - col : SIDE;
        configure((int)n, a_rows);
        columns(g, col, n, 1, int8);
    }
    _tile_release();
}

static bool amx_can(enum dtype ab_dtype, enum dtype c_dtype)
{
    (void)c_dtype;
    return ab_dtype == DTYPE_BF16;
}

static const void *amx_prepare(const struct gemm *tile, size_t *lane_bytes)
{
    *lane_bytes = 0;
    return tile->b_transposed && !tile->a_transposed && !tile->accumulate ? "AMX" : NULL;
}

AMX static bool amx_tile(const void *handle, const struct gemm *tile, void *lane)
{
    (void)handle, (void)lane;
    if (tile->b_scales != NULL) {
        product(tile, true);
    } else {
        product(tile, false);
    }
    return true;
}

const struct gemm_backend gemm_amx = {
    .name = "rows by AMX", .open = gemm_amx_open, .can = amx_can, .prepare = amx_prepare, .tile = amx_tile};

#else

bool gemm_amx_open(void)
{
    return false;
}

const struct gemm_backend gemm_amx = {.name = "rows by AMX"};

void gemm_amx_pack_bf16(void *packed, const void *rows, int64_t stride, int64_t n, int64_t k, int64_t block)
{
    (void)packed, (void)rows, (void)stride, (void)n, (void)k, (void)block;
}

void gemm_amx_pack_int16(void *packed, const int16_t *rows, int64_t stride, int64_t n, int64_t block)
{
    (void)packed, (void)rows, (void)stride, (void)n, (void)block;
}

#endif
