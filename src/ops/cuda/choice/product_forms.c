#include "ops/cuda/choice/product_forms.h"

#include "ops/workspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char VARIABLE[] = "KILN_PRODUCT", LIBRARY[] = "library";

static const char *const TILES[LAUNCH_PRODUCT_TILES] = {
    [LAUNCH_TILE_64_64] = "64x64",         [LAUNCH_TILE_64_128] = "64x128",
    [LAUNCH_TILE_64_192] = "64x192",       [LAUNCH_TILE_128_128] = "128x128",
    [LAUNCH_TILE_64_64_BY_4] = "64x64by4", [LAUNCH_TILE_128_128_BY_4] = "128x128by4",
};

struct status product_asked_for(int *asked_for)
{
    const char *name = getenv(VARIABLE);
    char names[128];
    int used = snprintf(names, sizeof names, "%s", LIBRARY);
    *asked_for = PRODUCT_ANY;
    if (name == NULL || name[0] == '\0') {
        return status_ok();
    }
    *asked_for = strcmp(name, LIBRARY) == 0 ? PRODUCT_LIBRARY : PRODUCT_ANY;
    for (int i = 0; i < LAUNCH_PRODUCT_TILES; i++) {
        *asked_for = strcmp(name, TILES[i]) == 0 ? i : *asked_for;
        used += snprintf(names + used, sizeof names - (size_t)used, ", %s", TILES[i]);
    }
    return *asked_for != PRODUCT_ANY
               ? status_ok()
               : status_error(STATUS_USAGE, "%s=%.40s: no form of a product is called that; there are %s",
                              VARIABLE, name, names);
}

enum launch_type product_launch_type(enum dtype t)
{
    CHECK(t == DTYPE_F32 || t == DTYPE_BF16 || t == DTYPE_F16, "a product of %s", dtype_name(t));
    return t == DTYPE_BF16 ? LAUNCH_BF16 : t == DTYPE_F16 ? LAUNCH_F16 : LAUNCH_F32;
}

void product_form_before(const struct launch *l, enum product_form form, const struct cuda_product *p,
                         void *room)
{
    if (form == PRODUCT_EPILOGUE && p->bias != NULL && p->bias_dtype != p->c_dtype) {
        struct launch_rows to = {room, p->n}, from = {(void *)p->bias, p->n};
        cuda_launch_cast(l, to, product_launch_type(p->c_dtype), from, LAUNCH_F32, 1, p->n);
    } else if (form == PRODUCT_BROADCAST) {
        cuda_launch_broadcast(l, (struct launch_rows){p->c, p->c_stride}, product_launch_type(p->c_dtype),
                              p->bias, product_launch_type(p->bias_dtype), p->m, p->n);
    }
}

void product_form_after(const struct launch *l, enum product_form form, const struct cuda_product *p,
                        void *room)
{
    if (p->gelu != NULL && p->bias != NULL && form == PRODUCT_ALONE) {
        cuda_launch_bias_gelu(l, p->gelu, p->c, p->bias, product_launch_type(p->bias_dtype),
                              product_launch_type(p->c_dtype), p->m, p->n, p->gelu_maxima);
    } else if (p->gelu != NULL) {
        cuda_launch_gelu(l, p->gelu, p->c, product_launch_type(p->c_dtype), p->m * p->n, p->gelu_maxima);
    }
    if (p->bias_gradient != NULL && form == PRODUCT_EPILOGUE) {
        cuda_launch_column_sum(l, p->bias_gradient, (struct launch_rows){room, p->m}, LAUNCH_F32, 1, p->m, 1,
                               NULL);
    } else if (p->bias_gradient != NULL) {
        cuda_launch_column_sum(l, p->bias_gradient, (struct launch_rows){(void *)p->a, p->a_stride},
                               product_launch_type(p->a_dtype), p->k, p->m, workspace_runs(p->k, p->m), NULL);
    }
}

void product_form_launch_short(const struct launch *l, enum launch_product_tile tile,
                               const struct cuda_product *p)
{
    const struct launch_product q = {.m = p->m,
                                     .n = p->n,
                                     .k = p->k,
                                     .c = {p->c, p->c_stride},
                                     .a = {(void *)p->a, p->a_stride},
                                     .b = {(void *)p->b, p->b_stride},
                                     .bias = p->bias,
                                     .bias_is_float = p->bias != NULL && p->bias_dtype == DTYPE_F32,
                                     .gelu = p->gelu};
    cuda_launch_short_product(l, tile, &q, product_launch_type(p->c_dtype));
}
