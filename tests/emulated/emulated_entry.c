/* What libkiln_cuda.so shows, for the library of emulated kernels: the whole program with --device cuda,
 * where there is no GPU. */
#include "ops/backend.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/cuda/choice/attention_choice.h"
#include "ops/cuda/table/cuda_slots.h"
#include "plain_products.h"

#include <stdio.h>

extern const struct backend_entry kiln_cuda_entry;

static struct status probe(const struct device **device, char *text, size_t n)
{
    *device = &device_emulated;
    snprintf(text, n, "kernels emulated on the cpu, for tests");
    return status_ok();
}

static void describe(char *text, size_t n)
{
    static const struct product_cache nothing;
    size_t used = (size_t)snprintf(text, n, "products in loops\n");
    attention_describe(text + used, n - used, &nothing, "no GPU");
}

__attribute__((visibility("default"))) const struct backend_entry kiln_cuda_entry = {
    BACKEND_ENTRY_LAYOUT, .ops = &ops_cuda, .probe = probe, .log_to = cuda_log_to, .describe = describe,
};
