#include "ops/cpu/gemm_by_rows.h"

#include "ops/cpu/gemm_amx.h"
#include "ops/cpu/lanes.h"
#include "ops/workspace.h"

/* A that is packed, or rounded to whole numbers, or both. */
struct packing {
    const struct gemm *g; /* of A as it is */
    int16_t *rows;        /* [workspace_packed_rows(m), stride] */
    float *scales;        /* [m] of whole numbers */
    int64_t stride, block;
    bool by_amx;
};

/* A row as whole numbers. */
static void round_row(const struct packing *p, int64_t i, int16_t *out, float *lane)
{
    const void *row = gemm_element(p->g->a, dtype_bytes(p->g->ab_dtype), i * p->g->a_stride);
    if (p->g->ab_dtype == DTYPE_BF16) {
        gemm_convert()->from_bf16(lane, row, 0, 1, p->g->k);
        row = lane;
    }
    p->scales[i] = gemm_convert()->to_int16(out, p->stride, row, p->g->k);
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
                        .by_amx = by_amx};
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
 * bits.  Sums of whole numbers are exact in every kernel: one row is read faster by the other
 * one (measured on Sapphire Rapids), and a sum of the lower bytes of more columns would not fit 31 bits. */
static bool is_by_amx(const struct gemm *g)
{
    enum { MOST_LOWER_BYTES = 65536 };
    bool int8 = g->b_scales != NULL;
    return gemm_has_amx() && (int8 ? g->m > 1 && g->k <= MOST_LOWER_BYTES : g->ab_dtype == DTYPE_BF16);
}

void gemm_by_rows(struct exec *x, const char *op, struct gemm_call *c, size_t after_bytes)
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
