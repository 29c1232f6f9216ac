/* gpu_chips: GPUs as tables of what was measured on them, and what a launch (cuda_traffic.h) takes on one, predicted. */
#ifndef KILN_OPS_CUDA_FORECAST_GPU_CHIPS_H
#define KILN_OPS_CUDA_FORECAST_GPU_CHIPS_H

#include "ops/cuda/forecast/cuda_traffic.h"

/* A product of cuBLASLt that was timed: [m, k] by [k, n], in tera FLOP/s. */
struct gpu_product {
    enum cuda_product_side side;
    bool fp8; /* else bf16 */
    int64_t m, n, k;
    double tflops;
};

struct gpu_chip {
    const char *name, *title; /* "h200", "NVIDIA H200" */
    bool computes_in_fp8;
    int multiprocessors;
    double clock_hz;                 /* under load */
    double copy;                     /* bytes read and written a second */
    double cached;                   /* bytes a second from the second-level cache, to all multiprocessors */
    double hot;                      /* of the tabulated rates, where products have run for seconds */
    double fp32_tflops, tf32_tflops; /* products of fp32 matrices; 16-bit and fp8 ones are tabulated */
    double gap_s;       /* from the end of one launch of a recording to the beginning of the next */
    double early_gap_s; /* the same of a launch that may begin early */
    double least_s;     /* the shortest kernel */
    double wait_s;      /* an access to memory that nothing runs beside */
    double edge_s;      /* more than the gap, where a launch waits for one of another stream */
    double step_s;      /* between steps: the wait for the results, the copy of the next batch */
    const struct gpu_product *products; /* [n_products] */
    int n_products;
};

/* The chip of this name, STATUS_USAGE if there is none; and the tabulated ones, NULL behind the last. */
struct status gpu_chip_find(const struct gpu_chip **chip, const char *name);
const struct gpu_chip *gpu_chip_at(int i);

/* How a launch takes multiprocessors, in this order.  A product runs in waves of one tile a multiprocessor. */
struct gpu_phases {
    double idle_s; /* it takes none: its gap, its waits, what a kernel lasts at least beyond its work */
    double all_s;  /* it takes all, or memory, which it leaves to nobody else */
    double last_s; /* its last wave takes `last` of them */
    double last;
};
struct gpu_phases gpu_chip_phases(const struct gpu_chip *chip, const struct cuda_launch *l);

/* Seconds of one launch, its gap included: those of its phases. */
double gpu_chip_seconds(const struct gpu_chip *chip, const struct cuda_launch *l);

/* The rate that a product of this shape comes to, FLOP/s: that of the tabulated one whose shape is nearest by the ratio
 * of its sides, less where there are not tiles enough for all multiprocessors. */
double gpu_chip_product_rate(const struct gpu_chip *chip, const struct cuda_launch *l);

#endif
