/* cuda_traffic_parts: shared by the files of cuda_traffic: a kernel's shares, and how a launch is reported.
 * Private to them. */
#ifndef KILN_OPS_CUDA_FORECAST_CUDA_TRAFFIC_PARTS_H
#define KILN_OPS_CUDA_FORECAST_CUDA_TRAFFIC_PARTS_H

#include "ops/cuda/forecast/cuda_traffic.h"

#include <math.h>

enum { MOST_LAUNCHES = 4 };

/* A kernel: the share of the rate of copies that it reaches, and of that of instructions.  Predicted from the
 * instructions per element in sm_90a's code; to be replaced by measurements (docs/numbers.md). */
struct kernel {
    const char *name;
    double copy_share, issue_share;
};

/* Those of cuda_traffic.c that LAUNCH_EARLY launches (device_code.cuh). */
bool cuda_traffic_begins_early(const char *kernel);

static inline struct cuda_traffic *traffic_of(const struct exec *x)
{
    return (struct cuda_traffic *)x->ops;
}

static inline void tell(const struct exec *x, const struct cuda_launch *l)
{
    struct cuda_traffic *t = traffic_of(x);
    struct cuda_launch told = *l;
    told.beside = x->beside && x->recording;
    t->launched(t->self, &told);
}

static inline struct cuda_launch memory_launch(struct kernel k, double bytes)
{
    return (struct cuda_launch){.kernel = k.name,
                                .bytes = bytes,
                                .copy_share = k.copy_share,
                                .early = cuda_traffic_begins_early(k.name)};
}

/* A launch bounded by memory. */
static inline void move(const struct exec *x, struct kernel k, double bytes)
{
    struct cuda_launch l = memory_launch(k, bytes);
    tell(x, &l);
}

/* A launch of few blocks, each of which waits this many times in a row. */
static inline void wait(const struct exec *x, struct kernel k, double bytes, double waits)
{
    struct cuda_launch l = memory_launch(k, bytes);
    l.waits = waits;
    tell(x, &l);
}

static inline double bytes_of(tensor t)
{
    return tensor_is_null(t) ? 0 : (double)tensor_bytes(t);
}

static inline double rounds(double n, double at_once)
{
    return ceil(n / at_once);
}

static inline double seconds_of(const struct exec *x, const struct cuda_launch *launches, int n)
{
    double seconds = 0;
    for (int i = 0; i < n; i++) {
        seconds += traffic_of(x)->seconds(traffic_of(x)->self, &launches[i]);
    }
    return seconds;
}

/* Kernels that other ops launch too: zeroing rows; adding partial sums of this many bytes; sums over rows of
 * a matrix. */
void cuda_traffic_clear_rows(const struct exec *x, tensor rows);
void cuda_traffic_add_runs(const struct exec *x, double bytes);
void cuda_traffic_sum_columns(const struct exec *x, double bytes, int64_t rows, int64_t cols);

/* Slots of the table, in cuda_traffic_attention.c. */
void cuda_traffic_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                            struct attention a);
void cuda_traffic_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias,
                                     tensor dout, tensor out, tensor lse, tensor q, tensor k, tensor v,
                                     struct attention a);

/* In cuda_traffic_optim.c. */
void cuda_traffic_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans);
void cuda_traffic_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                          int64_t n_spans);
void cuda_traffic_norm_of(struct exec *x, tensor norm, tensor sums);
void cuda_traffic_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                 const struct optim_span *spans, int64_t n_spans, tensor norm,
                                 tensor scalars);
void cuda_traffic_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                             int64_t n_spans, tensor sums, tensor norm, tensor scalars);
void cuda_traffic_lans_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                 const struct optim_span *spans, int64_t n_spans, tensor squares, tensor norm,
                                 tensor scalars);
void cuda_traffic_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                             int64_t n_spans, tensor sums, tensor norm, tensor scalars);
void cuda_traffic_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                        int64_t n_spans, tensor norm, tensor scalars);
void cuda_traffic_nesterov(struct exec *x, tensor sums, struct optim_buffers b,
                           const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars);
void cuda_traffic_unit(struct exec *x, tensor out, tensor in, tensor sums);
void cuda_traffic_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                                    double c);
void cuda_traffic_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                          tensor norm, tensor scalars);

#endif
