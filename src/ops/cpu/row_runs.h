/* row_runs: sums over rows.  The rows are split into runs by their number alone, each run computes its
 * partial sums in the workspace, and row_runs_add adds those in order: the same bits on any number of
 * threads. */
#ifndef KILN_OPS_CPU_ROW_RUNS_H
#define KILN_OPS_CPU_ROW_RUNS_H

#include "ops/workspace.h"

static inline int64_t row_runs(int64_t rows)
{
    return workspace_at_most(rows, WORKSPACE_ROW_RUNS);
}

static inline int64_t row_run_begin(int64_t rows, int64_t run)
{
    return rows * run / row_runs(rows);
}

/* total[i] += sum over runs of partial[run * stride + i]; the first run's sums are overwritten. */
static inline void row_runs_add(float *total, float *partial, int64_t runs, int64_t stride, int64_t n)
{
    for (int64_t r = 1; r < runs; r++) {
        const float *row = partial + r * stride;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            partial[i] += row[i];
        }
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        total[i] += partial[i];
    }
}

#endif
