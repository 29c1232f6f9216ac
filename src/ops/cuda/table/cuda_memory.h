/* cuda_memory: tables that ops keep in device memory. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_MEMORY_H
#define KILN_OPS_CUDA_TABLE_CUDA_MEMORY_H

#include "core/status.h"

#include <stddef.h>

/* Allocates device memory, which cuda_memory_free frees, and copies host data into it; STATUS_MEMORY. */
struct status cuda_memory_upload(void **on_device, const void *on_host, size_t bytes);
void cuda_memory_free(void *on_device);

#endif
