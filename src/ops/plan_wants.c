#include "ops/plan_wants.h"

#include <stdio.h>

static void describe(char *text, size_t n, tensor t)
{
    int used = snprintf(text, n, "%s [", dtype_name(t.dtype));
    for (int i = 0; i < t.n_dims; i++) {
        used += snprintf(text + used, n - (size_t)used, "%s%lld", i == 0 ? "" : ", ", (long long)t.dims[i]);
    }
    snprintf(text + used, n - (size_t)used, "]");
}

void plan_wants(struct exec *x, const char *op, double flops, size_t scratch, const struct want *wants, int n)
{
    if (failed(x->status)) {
        return;
    }
    for (int i = 0; i < n; i++) {
        const struct want *w = &wants[i];
        bool fits = w->t.n_dims > 0 && tensor_rows(w->t) == w->rows && tensor_cols(w->t) == w->cols;
        if (!fits || (w->dtype != ANY && (int)w->t.dtype != w->dtype)) {
            char found[160];
            describe(found, sizeof found, w->t);
            exec_fail(x, STATUS_INTERNAL, op, "%s must be %s of %lld rows and %lld columns, but is %s",
                      w->name, w->dtype == ANY ? "a tensor" : dtype_name((enum dtype)w->dtype),
                      (long long)w->rows, (long long)w->cols, found);
            return;
        }
        x->totals.bytes += (double)tensor_bytes(w->t);
    }
    x->totals.flops += flops;
    exec_scratch(x, scratch);
}
