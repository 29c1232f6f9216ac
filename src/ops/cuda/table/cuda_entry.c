/* cuda_entry: the one symbol that libkiln_cuda.so exports. */
#include "ops/backend.h"
#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/table/cuda_device.h"
#include "ops/cuda/table/cuda_log.h"
#include "ops/cuda/table/cuda_ops.h"

extern const struct backend_entry kiln_cuda_entry;

__attribute__((visibility("default"))) const struct backend_entry kiln_cuda_entry = {
    BACKEND_ENTRY_LAYOUT,
    .ops = &ops_cuda,
    .probe = cuda_device_probe,
    .log_to = cuda_log_to,
    .describe = cuda_choices_describe,
};
