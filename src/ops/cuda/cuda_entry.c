/* cuda_entry: the one name that libkiln_cuda.so shows. */
#include "ops/backend.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/cuda_log.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/cuda_products.h"

extern const struct backend_entry kiln_cuda_entry;

__attribute__((visibility("default"))) const struct backend_entry kiln_cuda_entry = {
    .version = KILN_VERSION,
    .entry_bytes = sizeof(struct backend_entry),
    .device_bytes = sizeof(struct device),
    .exec_bytes = sizeof(struct exec),
    .ops_bytes = sizeof(struct ops),
    .tensor_bytes = sizeof(tensor),
    .device = &device_cuda,
    .ops = &ops_cuda,
    .probe = cuda_device_probe,
    .log_to = cuda_log_to,
    .describe = cuda_products_describe,
};
