/* sums_code: sums over rows in two stages of fixed shape: runs of rows are summed in parallel, each into its
 * own row of partial sums; then add_runs adds those in order.  No atomic, so the bits do not depend on
 * scheduling. */
#ifndef KILN_OPS_CUDA_KERNELS_SUMS_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_SUMS_CODE_CUH

#include "ops/cuda/kernels/device_code.cuh"

/* Up to three vectors [n] that sums are added to; NULL where one is not wanted. */
struct run_totals {
    float *vector[3];
};

/* totals[k][i] += sum over runs of partials[k][run][i], for the first n_totals vectors. */
void add_runs(const launch *l, const run_totals &totals, int n_totals, const float *partials, int64_t runs,
              int64_t n);

#endif
