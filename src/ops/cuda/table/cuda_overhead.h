/* cuda_overhead: device memory that a CUDA context takes for itself; without CUDA's headers, so that a plan
 * may count it too. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_OVERHEAD_H
#define KILN_OPS_CUDA_TABLE_CUDA_OVERHEAD_H

/* Device memory that a context's products hold all the time, and work beside again: space for a bias, and a
 * workspace of the library.  The workspace is twice what NVIDIA recommends for Hopper (cuBLAS documentation,
 * cublasSetWorkspace), as in the measurements behind the rates of docs/numbers.md. */
enum { CUDA_PRODUCTS_WORKSPACE = 64 << 20, CUDA_PRODUCTS_ROOM = 1 << 20 };

/* And an allowance for kernels of libraries, which are loaded on first use, graphs, and tables of spans.
 * tools/gpu_check.sh compares it with what a run takes. */
enum {
    CUDA_LOADED_BYTES = 96 << 20,
    CUDA_OVERHEAD_BYTES = 2 * (CUDA_PRODUCTS_WORKSPACE + CUDA_PRODUCTS_ROOM) + CUDA_LOADED_BYTES
};

#endif
