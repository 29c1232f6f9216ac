/* What libkiln_cuda.so shows, for the library of emulated kernels: the whole program with --device cuda, where there is
 * no GPU. */
#include "ops/backend.h"
#include "ops/cuda/cuda_log.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/launch.h"
#include "plain_products.h"

#include <stdio.h>

extern const struct backend_entry kiln_cuda_entry;

static struct status probe(char *text, size_t n)
{
    snprintf(text, n, "kernels emulated on the cpu, for tests");
    return status_ok();
}

static void describe(char *text, size_t n)
{
    snprintf(text, n, "products in loops\nattention over heads of 32: %s in bf16",
             cuda_attention_kernel(LAUNCH_BF16, 32, true));
}

__attribute__((visibility("default"))) const struct backend_entry kiln_cuda_entry = {
    BACKEND_ENTRY_LAYOUT, .device = &device_emulated, .ops = &ops_cuda,
    .probe = probe,       .log_to = cuda_log_to,      .describe = describe,
};
