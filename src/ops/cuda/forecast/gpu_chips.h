/* gpu_chips: tables of rates of GPUs, measured there or taken over from one that was, and the predicted time of a launch (cuda_traffic.h) on one. */
#ifndef KILN_OPS_CUDA_FORECAST_GPU_CHIPS_H
#define KILN_OPS_CUDA_FORECAST_GPU_CHIPS_H

#include "ops/cuda/forecast/cuda_traffic.h"

/* A timed product of cuBLASLt: [m, k] by [k, n], in tera FLOP/s. */
struct gpu_product {
    enum cuda_product_side side;
    bool fp8; /* else bf16 */
    int64_t m, n, k;
    double tflops;
};

struct gpu_chip {
    const char *name, *title; /* "h200", "NVIDIA H200" */
    const char *rates;        /* where the rates are from */
    bool computes_in_fp8;
    int multiprocessors;
    double clock_hz;                 /* under load */
    double copy;                     /* bytes read and written a second */
    double cached;                   /* bytes a second from the second-level cache, to all multiprocessors */
    double hot;                      /* share of the tabulated rates, after products have run for seconds */
    double fp32_tflops, tf32_tflops; /* products of fp32 matrices; 16-bit and fp8 ones are tabulated */
    double gap_s;       /* from the end of one launch of a recording to the beginning of the next */
    double early_gap_s; /* the same of a launch that may begin early */
    double least_s;     /* the shortest kernel */
    double wait_s;      /* an access to memory while nothing else runs */
    double edge_s;      /* in addition to the gap, if a launch waits for one of another stream */
    double step_s;      /* between steps: the wait for the results, the copy of the next batch */
    const struct gpu_product *products; /* [n_products] */
    int n_products;
};

/* The chip of this name, STATUS_USAGE if there is none; and all chips, NULL after the last. */
struct status gpu_chip_find(const struct gpu_chip **chip, const char *name);
const struct gpu_chip *gpu_chip_at(int i);

/* The phases of a launch, in this order, by the multiprocessors that it uses.  A product runs in waves of one
 * tile a multiprocessor. */
struct gpu_phases {
    double idle_s; /* it uses none: its gap, its waits, and a kernel's least time beyond its work */
    double all_s;  /* it uses all, or all of the memory's rate */
    double last_s; /* its last wave uses `last` of them */
    double last;
};
struct gpu_phases gpu_chip_phases(const struct gpu_chip *chip, const struct cuda_launch *l);

/* Seconds of one launch, its gap included: the sum of its phases. */
double gpu_chip_seconds(const struct gpu_chip *chip, const struct cuda_launch *l);

/* The rate of a product of this shape, FLOP/s: that of the tabulated product with the nearest ratio of sides,
 * or less if there are too few tiles for all multiprocessors. */
double gpu_chip_product_rate(const struct gpu_chip *chip, const struct cuda_launch *l);

#endif
