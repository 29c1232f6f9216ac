#include "ops/cpu/gemm_tiles.h"

#include <string.h>

size_t gemm_a_bytes(const struct gemm *g)
{
    return g->b_scales != NULL && g->ab_dtype != DTYPE_I8 ? sizeof(int16_t) : dtype_bytes(g->ab_dtype);
}

static size_t b_bytes(const struct gemm *g)
{
    return g->b_scales != NULL ? sizeof(int8_t) : dtype_bytes(g->ab_dtype);
}

static const float *numbers(const float *p, int64_t n)
{
    return p == NULL ? NULL : p + n;
}

/* The product that computes rows from i, columns from j of C over the inner range from l. */
static struct gemm tile_at(const struct gemm_call *c, int64_t i, int64_t j, int64_t l)
{
    struct gemm t = *c->g;
    t.m = c->g->m - i < c->tile_m ? c->g->m - i : c->tile_m;
    t.n = c->g->n - j < c->tile_n ? c->g->n - j : c->tile_n;
    t.k = c->g->k - l < c->tile_k ? c->g->k - l : c->tile_k;
    t.c = (void *)gemm_element(t.c, dtype_bytes(t.c_dtype), i * t.c_stride + j);
    t.a = gemm_element(t.a, gemm_a_bytes(&t), t.a_transposed ? l * t.a_stride + i : i * t.a_stride + l);
    t.b = gemm_element(t.b, b_bytes(&t), t.b_transposed ? j * t.b_stride + l : l * t.b_stride + j);
    t.bias = numbers(t.bias, j);
    t.a_scales = numbers(t.a_scales, i);
    t.b_scales = numbers(t.b_scales, j);
    t.a_zeros = t.a_zeros == NULL ? NULL : t.a_zeros + i;
    t.b_sums = t.b_sums == NULL ? NULL : t.b_sums + j;
    return t;
}

void gemm_add_product(const struct gemm *g, const float *product)
{
    for (int64_t i = 0; i < g->m; i++, product += g->n) {
        if (g->c_dtype == DTYPE_F32) {
            float *restrict c = (float *)g->c + i * g->c_stride;
            for (int64_t j = 0; j < g->n; j++) {
                c[j] += product[j];
            }
        } else {
            uint16_t *restrict c = (uint16_t *)g->c + i * g->c_stride;
            for (int64_t j = 0; j < g->n; j++) {
                c[j] = bf16_from_f32(bf16_to_f32(c[j]) + product[j]);
            }
        }
    }
}

static int form_of(const struct gemm_call *c, const struct gemm *t)
{
    return 4 * (t->k < c->tile_k) + 2 * (t->n < c->tile_n) + (t->m < c->tile_m);
}

bool gemm_tiles_prepare(struct gemm_call *c, const struct gemm_backend *b)
{
    const struct gemm *g = c->g;
    c->backend = b;
    c->backend_bytes = 0;
    memset(c->forms, 0, sizeof c->forms);
    int64_t last_i = (c->tiles_m - 1) * c->tile_m, last_j = (c->tiles_n - 1) * c->tile_n;
    int64_t last_l = (gemm_blocks(g->k, c->tile_k) - 1) * c->tile_k;
    for (int f = 0; f < GEMM_MAX_FORMS; f++) {
        struct gemm t = tile_at(c, f & 1 ? last_i : 0, f & 2 ? last_j : 0, f & 4 ? last_l : 0);
        int form = form_of(c, &t);
        if (c->forms[form] == NULL) {
            size_t bytes = 0;
            c->forms[form] = c->backend->prepare(&t, &bytes);
            if (c->forms[form] == NULL || c->forms[form] == gemm_no_memory) {
                c->no_memory = c->forms[form] == gemm_no_memory;
                return false;
            }
            c->backend_bytes = bytes > c->backend_bytes ? bytes : c->backend_bytes;
        }
    }
    c->backend_bytes = (c->backend_bytes + 63) / 64 * 64;
    return true;
}

void gemm_tiles_item(const void *context, int64_t item, void *lane)
{
    const struct gemm_call *c = context;
    int64_t i = item % c->tiles_m * c->tile_m, j = item / c->tiles_m * c->tile_n;
    for (int64_t l = 0; l < c->g->k; l += c->tile_k) {
        struct gemm t = tile_at(c, i, j, l);
        if (!c->backend->tile(c->forms[form_of(c, &t)], &t, lane)) {
            atomic_store(c->failed, true);
        }
        if (c->after != NULL) {
            struct gemm_part part = {i, t.m, j, t.n, l, t.k};
            c->after(c->context, &part, (char *)lane + c->backend_bytes);
        }
    }
}
