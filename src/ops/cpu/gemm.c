#include "core/signals.h"
#include "dev/host_memory.h"
#include "ops/cpu/cpu_isa.h"
#include "ops/cpu/gemm_backend.h"
#include "ops/cpu/gemm_tiles.h"
#include "ops/cpu/lanes.h"
#include "ops/workspace.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Tiles are as large as is useful (measured on Zen 4: 256 x 1024 runs 3 to 8 % faster than 128 x 384), but
 * numerous enough to keep all threads busy. */
enum { TILES_WANTED = 16, ROWS_FOR_TALL_TILES = 2048, MIN_TILE_COLS = 128, MAX_TILE_DEPTH = 1024 };

enum { MAX_BACKENDS = 3, MAX_LINES = MAX_BACKENDS + 1 };

/* Memory that must be free before the libraries are opened: for their files, and for code that probes what
 * they support. */
static const size_t OPENING_BYTES = (size_t)80 << 20;

const char gemm_no_memory[] = "no memory";

static struct {
    /* fastest first; the last is the plain one, which supports everything */
    const struct gemm_backend *on[MAX_BACKENDS];
    int n_on;
    /* index in `on` of the backend that is tried first, for ab and c in fp32 (0) or bf16 (1) */
    int first[2][2];
    const struct gemm_backend *int8; /* the one for int8 by int8; NULL: none has instructions for it */
    char lines[MAX_LINES][160];
} backends;

static atomic_bool backends_are_open;
static pthread_once_t backends_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t product_lock = PTHREAD_MUTEX_INITIALIZER; /* handles live for one product */

/* ---- the plain backend and conversions, compiled for each instruction set ---- */

#define GEMM_DECLARE(isa)                                                                                    \
    void gemm_plain_kernels_fill_##isa(struct gemm_backend *t);                                              \
    void gemm_rows_kernels_fill_##isa(struct gemm_backend *t);                                               \
    void gemm_convert_kernels_fill_##isa(struct gemm_convert *t);
#define GEMM_ROW(isa)                                                                                        \
    {gemm_plain_kernels_fill_##isa, gemm_rows_kernels_fill_##isa, gemm_convert_kernels_fill_##isa},

CPU_ISAS(GEMM_DECLARE)

static const struct {
    void (*plain)(struct gemm_backend *t);
    void (*rows)(struct gemm_backend *t);
    void (*convert)(struct gemm_convert *t);
} fills[] = {CPU_ISAS(GEMM_ROW)};

static struct gemm_backend plain, rows;
static struct gemm_convert convert;
static bool has_amx;
static pthread_once_t fill_once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    fills[cpu_isa_best()].plain(&plain);
    fills[cpu_isa_best()].rows(&rows);
    fills[cpu_isa_best()].convert(&convert);
    has_amx = gemm_amx_open();
}

const struct gemm_backend *gemm_plain(void)
{
    pthread_once(&fill_once, fill);
    return &plain;
}

const struct gemm_backend *gemm_rows(void)
{
    pthread_once(&fill_once, fill);
    return &rows;
}

bool gemm_has_amx(void)
{
    pthread_once(&fill_once, fill);
    return has_amx;
}

const struct gemm_convert *gemm_convert(void)
{
    pthread_once(&fill_once, fill);
    return &convert;
}

/* ---- which backend ---- */

static void consider(int line, const char *name, const struct gemm_backend *b)
{
    const char *state = b == NULL   ? "not compiled in"
                        : b->open() ? "on"
                                    : "off: it does not work on this machine";
    if (b != NULL && state[1] == 'n') {
        int at = b->goes_first != NULL && b->goes_first() ? 0 : backends.n_on;
        for (int i = backends.n_on++; i > at; i--) {
            backends.on[i] = backends.on[i - 1];
        }
        backends.on[at] = b;
    }
    const char *version = b == NULL || b->version == NULL ? NULL : b->version();
    snprintf(backends.lines[line], sizeof backends.lines[line], "%s%s%.100s: %s", b == NULL ? name : b->name,
             version == NULL ? "" : " ", version == NULL ? "" : version, state);
}

static void backends_open(void)
{
#if KILN_HAVE_ONEDNN
    consider(0, "oneDNN", &gemm_onednn);
#else
    consider(0, "oneDNN", NULL);
#endif
#if KILN_HAVE_BLAS
    consider(1, "BLAS", &gemm_blas);
#else
    consider(1, "BLAS", NULL);
#endif
    consider(2, "plain", gemm_plain());
    snprintf(backends.lines[MAX_BACKENDS], sizeof backends.lines[0], "%s: %s", gemm_amx.name,
             has_amx ? "on" : "this processor, or its system, has no AMX");
    for (int i = 0; i < 4; i++) {
        int *first = &backends.first[i / 2][i % 2];
        while (!backends.on[*first]->can(i / 2 ? DTYPE_BF16 : DTYPE_F32, i % 2 ? DTYPE_BF16 : DTYPE_F32)) {
            (*first)++;
        }
    }
    for (int i = 0; i < backends.n_on && backends.int8 == NULL; i++) {
        backends.int8 = backends.on[i]->can(DTYPE_I8, DTYPE_F32) ? backends.on[i] : NULL;
    }
    atomic_store(&backends_are_open, true);
}

/* Index of the fastest backend for these dtypes. */
static int choose(enum dtype ab_dtype, enum dtype c_dtype)
{
    pthread_once(&backends_once, backends_open);
    return backends.first[ab_dtype == DTYPE_BF16][c_dtype == DTYPE_BF16];
}

const char *gemm_backend_name(enum dtype dtype)
{
    return backends.on[choose(dtype, dtype)]->name;
}

const char *gemm_backend_line(int i)
{
    pthread_once(&backends_once, backends_open);
    return i >= 0 && i < MAX_LINES ? backends.lines[i] : NULL;
}

/* Whether the libraries are open, or there is enough memory to open them. */
static bool can_open(void)
{
    return atomic_load(&backends_are_open) || host_memory_can_map(OPENING_BYTES);
}

bool gemm_multiplies_int8(void)
{
    if (!can_open()) {
        return false;
    }
    pthread_once(&backends_once, backends_open);
    return backends.int8 != NULL;
}

static void cut_to(struct gemm_call *c, int64_t max_rows)
{
    const struct gemm *g = c->g;
    c->tile_m = gemm_part_size(g->m, gemm_blocks(g->m, max_rows), 16);
    c->tiles_m = gemm_blocks(g->m, c->tile_m);
    int64_t parts_n = gemm_blocks(g->n, GEMM_MAX_TILE_COLS), wanted = gemm_blocks(TILES_WANTED, c->tiles_m);
    int64_t most = g->n / (g->a_transposed ? 2 * MIN_TILE_COLS : MIN_TILE_COLS); /* A is packed too */
    wanted = wanted < most ? wanted : most;
    c->tile_n = gemm_part_size(g->n, parts_n > wanted ? parts_n : wanted, 64);
    c->tiles_n = gemm_blocks(g->n, c->tile_n);
}

static void cut(struct gemm_call *c)
{
    const struct gemm *g = c->g;
    bool tall = g->m >= ROWS_FOR_TALL_TILES;
    if (g->a_transposed) { /* every row of tiles packs B again: so use few rows, if two threads share them
                            * evenly */
        cut_to(c, GEMM_MAX_TILE_ROWS);
        int64_t tiles = c->tiles_m * c->tiles_n;
        tall = tall || (tiles >= 4 && tiles % 2 == 0);
    }
    cut_to(c, tall ? GEMM_MAX_TILE_ROWS : GEMM_MAX_TILE_ROWS / 2);
    /* sums over tokens: short ranges keep the panels in the cache and the number of forms small */
    bool in_runs = g->accumulate && g->c_dtype == DTYPE_F32;
    c->tile_k = in_runs ? gemm_part_size(g->k, gemm_blocks(g->k, MAX_TILE_DEPTH), 64) : g->k;
}

static void fail_without_memory(struct exec *x, const char *op)
{
    exec_fail(x, STATUS_MEMORY, op,
              "not enough memory for the library of matrix products; check `ulimit -v`");
}

/* Handles of the fastest library that has them all; false: no memory. */
static bool prepare(struct exec *x, struct gemm_call *c)
{
    int b = choose(c->g->ab_dtype, c->g->c_dtype);
    while (!gemm_tiles_prepare(c, backends.on[b])) {
        if (c->no_memory) {
            return false;
        }
        b++; /* the last one, the plain one, supports every form */
        x->served_why = "the first choice has no product of this form";
    }
    x->served_by = c->backend->name;
    return true;
}

/* ---- rows that do not depend on each other (exec.rows_alone), and a matrix in int8 ---- */

/* A that is packed, or rounded to integers, or both. */
struct packing {
    const struct gemm *g;  /* the product, with A as it is */
    int16_t *rows;         /* [workspace_packed_rows(m), stride] */
    float *scales;         /* [m] scales of integers */
    int32_t *zeros, *sums; /* zeros of bytes [m], and sums of rows of B [n] */
    int64_t stride, block;
    bool by_amx, int8_rows;
};

/* A row of A in fp32. */
static const float *row_of(const struct gemm *g, int64_t i, float *lane)
{
    const void *row = gemm_element(g->a, dtype_bytes(g->ab_dtype), i * g->a_stride);
    if (g->ab_dtype != DTYPE_BF16) {
        return row;
    }
    gemm_convert()->from_bf16(lane, row, 0, 1, g->k);
    return lane;
}

/* A row as integers.  Of bytes the second half of `out` has them, and is read before it is written. */
static void round_row(const struct packing *p, int64_t i, int16_t *out, float *lane)
{
    const float *row = row_of(p->g, i, lane);
    uint8_t *bytes = (uint8_t *)out + p->stride;
    int32_t zero;
    if (!p->int8_rows) {
        p->scales[i] = gemm_convert()->to_int16(out, p->stride, row, p->g->k);
        return;
    }
    p->scales[i] = gemm_convert()->to_bytes(bytes, &zero, row, p->g->k);
    for (int64_t l = 0; l < p->stride; l++) {
        out[l] = (int16_t)(l < p->g->k ? bytes[l] - zero : 0);
    }
}

static void pack_block(const void *context, int64_t item, void *lane)
{
    const struct packing *p = context;
    const struct gemm *g = p->g;
    int64_t row = item * p->block, n = g->m - row < p->block ? g->m - row : p->block;
    int16_t *packed = p->rows + row * p->stride;
    if (g->b_scales == NULL) {
        gemm_amx_pack_bf16(packed, (const uint16_t *)g->a + row * g->a_stride, g->a_stride, n, g->k,
                           p->block);
        return;
    }
    int16_t *whole = p->by_amx ? lane : packed;
    float *numbers_of_row = (float *)((int16_t *)lane + p->block * p->stride);
    for (int64_t i = 0; i < n; i++) {
        round_row(p, row + i, whole + i * p->stride, numbers_of_row);
    }
    if (p->by_amx) {
        gemm_amx_pack_int16(packed, whole, p->stride, n, p->block);
    }
}

/* Packs A for a product that is otherwise *g. */
static void pack(struct exec *x, const char *op, struct gemm *g, bool by_amx)
{
    struct gemm as_it_is = *g;
    int64_t stride = workspace_packed_stride(g->k), n_rows = workspace_packed_rows(g->m);
    int16_t *packed = exec_scratch(x, workspace_packed(g->m, g->k));
    struct packing p = {.g = &as_it_is,
                        .rows = packed,
                        .scales = (float *)(packed + n_rows * stride),
                        .stride = stride,
                        .block = by_amx && g->m > 1 ? WORKSPACE_PACKED_ROWS : 1,
                        .by_amx = by_amx,
                        .int8_rows = x->int8_rows};
    size_t lane_bytes = (size_t)(p.block * stride) * sizeof(int16_t) + (size_t)stride * sizeof(float);
    lanes_run(x, op, gemm_blocks(g->m, p.block), g->b_scales == NULL ? 0 : lane_bytes, pack_block, &p);
    g->a = p.rows;
    g->a_scales = p.scales;
    g->a_stride = stride;
    g->a_block = by_amx ? p.block : 0;
}

/* Few rows of A at a time, which stay in the cache while W goes by; and columns by which threads share W. */
static void cut_rows(struct gemm_call *c)
{
    enum { LEFT_BYTES = 256 << 10, LEAST_ROWS = 8, COLUMN_GRAIN = 24, PACKED_GRAIN = 32, TILES = 48 };
    const struct gemm *g = c->g;
    int64_t least = g->a_block > 0 ? PACKED_GRAIN : LEAST_ROWS,
            left = g->a_block > 0 ? 2 * LEFT_BYTES : LEFT_BYTES;
    int64_t most = left / (g->k * (int64_t)gemm_a_bytes(g)) / least * least;
    most = most < least ? least : most > GEMM_MAX_TILE_ROWS ? GEMM_MAX_TILE_ROWS : most;
    c->tile_m = gemm_part_size(g->m, gemm_blocks(g->m, most), g->a_block > 0 ? PACKED_GRAIN : 4);
    c->tiles_m = gemm_blocks(g->m, c->tile_m);
    c->tile_n =
        gemm_part_size(g->n, gemm_blocks(TILES, c->tiles_m), g->a_block > 0 ? PACKED_GRAIN : COLUMN_GRAIN);
    c->tiles_n = gemm_blocks(g->n, c->tile_n);
    c->tile_k = g->k;
}

/* Whether AMX computes it.  In bf16 that does not depend on the number of rows, so that a row has the same
 * bits.  Sums of integers are exact in every kernel: one row is read faster by the other
 * one (measured on Sapphire Rapids), and a sum of the lower bytes of more columns would not fit 31 bits. */
static bool is_by_amx(const struct gemm *g)
{
    enum { MOST_LOWER_BYTES = 65536 };
    bool int8 = g->b_scales != NULL;
    return gemm_has_amx() && (int8 ? g->m > 1 && g->k <= MOST_LOWER_BYTES : g->ab_dtype == DTYPE_BF16);
}

static void gemm_by_rows(struct exec *x, const char *op, struct gemm_call *c, size_t after_bytes)
{
    struct gemm g = *c->g;
    bool int8 = g.b_scales != NULL, by_amx = is_by_amx(&g);
    if (int8 || by_amx) {
        pack(x, op, &g, by_amx);
        c->g = &g;
    }
    cut_rows(c);
    CHECK(gemm_tiles_prepare(c, by_amx ? &gemm_amx : gemm_rows()), "a product that is not by rows alone");
    x->served_by = !int8 ? c->backend->name : by_amx ? "rows in int8 by AMX" : "rows in int8";
    lanes_run(x, op, c->tiles_m * c->tiles_n, c->backend_bytes + after_bytes, gemm_tiles_item, c);
}

/* ---- by a library ---- */

/* Signals are blocked, since some kernels of oneDNN point the stack register at scratch on the heap, where no
 * signal frame may go. */
static void run_tiles(struct exec *x, const char *op, struct gemm_call *c, size_t after_bytes)
{
    sigset_t before;
    signals_block(&before);
    lanes_run(x, op, c->tiles_m * c->tiles_n, c->backend_bytes + after_bytes, gemm_tiles_item, c);
    signals_restore(&before);
}

static void run_by_library(struct exec *x, const char *op, struct gemm_call *c, size_t after_bytes)
{
    const struct gemm *g = c->g;
    cut(c);
    if (!can_open()) {
        fail_without_memory(x, op);
        return;
    }
    pthread_mutex_lock(&product_lock);
    bool prepared = prepare(x, c);
    if (prepared) {
        run_tiles(x, op, c, after_bytes);
    }
    pthread_mutex_unlock(&product_lock);
    bool failed = atomic_load(c->failed);
    if (!prepared || (failed && !host_memory_can_map(OPENING_BYTES))) {
        fail_without_memory(x, op);
    } else if (failed) {
        exec_fail(x, STATUS_INTERNAL, op,
                  "%s cannot compute a product of [%lld, %lld] and [%lld, %lld] in %s", c->backend->name,
                  (long long)g->m, (long long)g->k, (long long)g->k, (long long)g->n,
                  dtype_name(g->ab_dtype));
    }
}

/* ---- int8 by int8 ---- */

enum { ROWS_AT_ONCE = 16 };

/* Rounds rows of A or, behind these, sums rows of B. */
static void prepare_rows(const void *context, int64_t item, void *lane)
{
    const struct packing *p = context;
    const struct gemm *g = p->g;
    int64_t of_a = gemm_blocks(g->m, ROWS_AT_ONCE), first = (item < of_a ? item : item - of_a) * ROWS_AT_ONCE;
    for (int64_t i = first; i < first + ROWS_AT_ONCE && i < g->m && item < of_a; i++) {
        p->scales[i] = gemm_convert()->to_bytes((uint8_t *)p->rows + i * p->stride, &p->zeros[i],
                                                row_of(g, i, lane), g->k);
    }
    for (int64_t j = first; j < first + ROWS_AT_ONCE && j < g->n && item >= of_a; j++) {
        p->sums[j] = gemm_convert()->sum_int8((const int8_t *)g->b + j * g->b_stride, g->k);
    }
}

/* False: no library has the product, or the memory for it; kernels by rows give the same integers. */
static bool run_int8_by_library(struct exec *x, const char *op, struct gemm_call *c, size_t after_bytes)
{
    const struct gemm *as_it_is = c->g;
    struct gemm g = *as_it_is;
    if (!gemm_multiplies_int8() || g.c_dtype != DTYPE_F32) {
        return false;
    }
    struct packing p = {.g = as_it_is,
                        .rows = exec_scratch(x, workspace_int8_rows(g.m, g.n, g.k)),
                        .stride = workspace_packed_stride(g.k)};
    int64_t n = workspace_packed_rows(g.m) * p.stride;
    p.scales = (float *)(p.rows + n);
    p.zeros = (int32_t *)((uint8_t *)p.rows + n);
    p.sums = (int32_t *)(p.scales + workspace_packed_rows(g.m));
    g.a = p.rows;
    g.a_scales = p.scales;
    g.a_zeros = p.zeros;
    g.b_sums = p.sums;
    g.a_stride = p.stride;
    g.ab_dtype = DTYPE_I8;
    c->g = &g;
    cut(c);
    pthread_mutex_lock(&product_lock);
    bool prepared = gemm_tiles_prepare(c, backends.int8);
    if (prepared) {
        lanes_run(x, op, gemm_blocks(g.m, ROWS_AT_ONCE) + gemm_blocks(g.n, ROWS_AT_ONCE),
                  (size_t)g.k * sizeof(float), prepare_rows, &p);
        x->served_by = "oneDNN int8";
        run_tiles(x, op, c, after_bytes);
    }
    pthread_mutex_unlock(&product_lock);
    c->g = as_it_is;
    return prepared && !atomic_load(c->failed);
}

/* ---- any product ---- */

void gemm_run(struct exec *x, const char *op, const struct gemm *g, gemm_after *after, size_t after_bytes,
              const void *context)
{
    if (g->m <= 0 || g->n <= 0) {
        return;
    }
    if (g->k <= 0) {
        exec_fail(x, STATUS_USAGE, op, "a product over an empty dimension");
        return;
    }
    atomic_bool tile_failed = false;
    struct gemm_call c = {.g = g, .after = after, .context = context, .failed = &tile_failed};
    bool rows_alone = x->rows_alone && g->b_transposed && !g->a_transposed && !g->accumulate;
    if (g->b_scales != NULL && x->int8_rows && run_int8_by_library(x, op, &c, after_bytes)) {
        return;
    }
    if (rows_alone || g->b_scales != NULL) {
        gemm_by_rows(x, op, &c, after_bytes);
    } else {
        run_by_library(x, op, &c, after_bytes);
    }
}
