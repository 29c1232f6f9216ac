/* Matrix products without a library: panels are packed into fp32, whatever their dtype and layout, and
 * multiplied by ops/cpu/tile_product.h.  It supports every tile, and is the fallback. */
#include "ops/cpu/gemm_backend.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/tile_product.h"

enum { PANEL_K = 256 };

/* Layout of the lane: A [tile rows, PANEL_K], B [PANEL_K, tile columns], C [tile rows, tile columns]. */
enum {
    A_FLOATS = GEMM_MAX_TILE_ROWS * PANEL_K,
    B_FLOATS = PANEL_K * GEMM_MAX_TILE_COLS,
    C_FLOATS = GEMM_MAX_TILE_ROWS * GEMM_MAX_TILE_COLS,
};

static float element(const void *data, enum dtype t, int64_t i)
{
    return t == DTYPE_F32 ? ((const float *)data)[i] : bf16_to_f32(((const uint16_t *)data)[i]);
}

/* A [rows, cols] panel from element `first` of `data` into `out`; rows up to padded_rows and columns up to
 * padded_cols become zero. */
struct panel {
    const void *data;
    enum dtype dtype;
    int64_t first, stride, rows, cols, padded_rows, padded_cols;
    bool transposed;
};

static void pack(float *out, int64_t out_stride, struct panel p)
{
    for (int64_t i = 0; i < p.padded_rows; i++) {
        float *row = out + i * out_stride;
        int64_t n = i < p.rows ? p.cols : 0;
        if (p.transposed) {
            for (int64_t j = 0; j < n; j++) {
                row[j] = element(p.data, p.dtype, p.first + j * p.stride + i);
            }
        } else if (p.dtype == DTYPE_F32 && n > 0) {
            memcpy(row, (const float *)p.data + p.first + i * p.stride, (size_t)n * sizeof(float));
        } else {
            rows_from_bf16(row, (const uint16_t *)p.data + p.first + i * p.stride, n);
        }
        memset(row + n, 0, (size_t)(p.padded_cols - n) * sizeof(float));
    }
}

static void store(const struct gemm *t, const float *c, int64_t c_stride)
{
    for (int64_t i = 0; i < t->m; i++) {
        const float *from = c + i * c_stride;
        for (int64_t j = 0; j < t->n; j++) {
            float v = from[j] + (t->bias == NULL ? 0.0f : t->bias[j]);
            int64_t at = i * t->c_stride + j;
            v += t->accumulate ? element(t->c, t->c_dtype, at) : 0.0f;
            if (t->c_dtype == DTYPE_F32) {
                ((float *)t->c)[at] = v;
            } else {
                ((uint16_t *)t->c)[at] = bf16_from_f32(v);
            }
        }
    }
}

static bool plain_tile(const void *handle, const struct gemm *t, void *lane)
{
    (void)handle;
    float *a = lane, *b = a + A_FLOATS, *c = b + B_FLOATS;
    int64_t m = kernel_round_up(t->m, TILE_ROWS), n = kernel_round_up(t->n, TILE_COLS);
    for (int64_t l = 0; l < t->k; l += PANEL_K) {
        int64_t k = kernel_min(PANEL_K, t->k - l);
        pack(a, PANEL_K,
             (struct panel){t->a, t->ab_dtype, t->a_transposed ? l * t->a_stride : l, t->a_stride, t->m, k, m,
                            k, t->a_transposed});
        pack(b, n,
             (struct panel){t->b, t->ab_dtype, t->b_transposed ? l : l * t->b_stride, t->b_stride, k, t->n, k,
                            n, t->b_transposed});
        tile_product(c, n, (struct tile_left){a, PANEL_K, 1}, b, n, m, n, k, l > 0, false);
    }
    store(t, c, n);
    return true;
}

static bool plain_open(void)
{
    return true;
}

static bool plain_can(enum dtype ab_dtype, enum dtype c_dtype)
{
    (void)c_dtype;
    return ab_dtype != DTYPE_I8;
}

static const void *plain_prepare(const struct gemm *t, size_t *lane_bytes)
{
    *lane_bytes = (A_FLOATS + B_FLOATS + C_FLOATS) * sizeof(float);
    return t->m <= GEMM_MAX_TILE_ROWS && t->n <= GEMM_MAX_TILE_COLS ? "plain" : NULL;
}

KERNEL_FILL(gemm_plain, struct gemm_backend)
{
    *t = (struct gemm_backend){
        .name = "plain", .open = plain_open, .can = plain_can, .prepare = plain_prepare, .tile = plain_tile};
}
