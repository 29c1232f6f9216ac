/* cuda_entry: the one name that libkiln_cuda.so shows. */
#include "ops/backend.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/cuda_log.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/cuda_products.h"
#include "ops/cuda/launch.h"

#include <stdio.h>
#include <string.h>

extern const struct backend_entry kiln_cuda_entry;

/* A line of products, and one of attention for each usual head size. */
static void describe(char *text, size_t n)
{
    static const int sizes[] = {32, 64, 96, 128, 160};
    cuda_products_describe(text, n);
    for (int i = 0; i < 5; i++) {
        size_t used = strlen(text);
        snprintf(text + used, n - used, "\nattention over heads of %d: %s in bf16 and fp16, %s in fp32",
                 sizes[i], cuda_attention_kernel(LAUNCH_BF16, sizes[i], true),
                 cuda_attention_kernel(LAUNCH_F32, sizes[i], true));
    }
}

__attribute__((visibility("default"))) const struct backend_entry kiln_cuda_entry = {
    BACKEND_ENTRY_LAYOUT,       .device = &device_cuda, .ops = &ops_cuda,
    .probe = cuda_device_probe, .log_to = cuda_log_to,  .describe = describe,
};
