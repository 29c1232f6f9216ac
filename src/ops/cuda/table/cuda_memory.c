#include "ops/cuda/table/cuda_context.h"

#include <cuda_runtime_api.h>

struct status cuda_memory_upload(void **on_device, const void *on_host, size_t bytes)
{
    cudaError_t e = cudaMalloc(on_device, bytes);
    if (e == cudaSuccess) {
        e = cudaMemcpy(*on_device, on_host, bytes, cudaMemcpyHostToDevice);
    }
    if (e == cudaSuccess) {
        e = cudaDeviceSynchronize(); /* a copy from pageable memory returns before it has ended */
    }
    return e == cudaSuccess ? status_ok()
                            : status_error(STATUS_MEMORY, "a table of an op: %s (%s)", cudaGetErrorString(e),
                                           cudaGetErrorName(e));
}

void cuda_memory_free(void *on_device)
{
    cudaFree(on_device);
}
