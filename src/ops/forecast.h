/* forecast: predicts the time of ops on a GPU that is not here, from the bytes and FLOPs of their kernels
 * (ops/cuda/forecast/cuda_traffic.h) and from rates measured on that GPU (ops/cuda/forecast/gpu_chips.h).
 *
 * It is an op table that computes nothing: code that runs its ops on f->watch.table gets a predicted time for
 * each op, under the names of ops/op_timer.h, and for each kernel. */
#ifndef KILN_OPS_FORECAST_H
#define KILN_OPS_FORECAST_H

#include "ops/cuda/forecast/gpu_chips.h"
#include "ops/forecast_streams.h"
#include "ops/op_timer.h"

enum { FORECAST_KERNELS = 64 };

struct forecast_kernel {
    const char *name;
    int64_t n_launches;
    double seconds, bytes, flops;
};

struct forecast {
    struct op_watch watch; /* first */
    struct cuda_traffic traffic;
    const struct gpu_chip *chip;
    struct op_total totals[OP_WATCH_N_OPS];           /* FLOPs and bytes by the plan, as in a timer */
    double seconds[OP_WATCH_N_OPS];                   /* totals.ns is the same in nanoseconds */
    struct forecast_kernel kernels[FORECAST_KERNELS]; /* [n_kernels] in the order of their first launches */
    int n_kernels;
    int64_t n_launches;
    double product_seconds, call_seconds;
    struct forecast_streams cool, hot; /* the same launches, with work beside in a second CUDA stream */
};

/* A device to plan for: the table of CUDA devices, without memory.  For a forecast with work beside, set
 * the exec's context to the forecast and give the ops as a recording (dev/queue.h). */
struct device forecast_device(const char *name, bool computes_in_fp8);

/* An empty forecast; `f` must not move while its table is used. */
void forecast_init(struct forecast *f, const struct gpu_chip *chip);

/* The time of all ops so far, one after the other; forecast_streams_seconds is the time with work beside. */
double forecast_seconds(const struct forecast *f);

/* The time that `seconds` become when products have run so long that the chip has slowed down. */
double forecast_hot_seconds(const struct forecast *f, double seconds);

#endif
