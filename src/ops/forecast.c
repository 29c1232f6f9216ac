#include "ops/forecast.h"

#include "ops/cuda/table/cuda_overhead.h"

#include <string.h>

/* As in a replay: only recorded work counts. */
static struct status graph_begin(void *context, const void *key, size_t key_bytes, enum device_work *work)
{
    (void)context, (void)key, (void)key_bytes;
    *work = DEVICE_WORK_RECORD;
    return status_ok();
}

static struct status graph_end(void *context, bool abandon)
{
    (void)context, (void)abandon;
    return status_ok();
}

static const struct device_graphs graphs = {.begin = graph_begin, .end = graph_end};

static struct status beside_begin(void *context)
{
    struct forecast *f = context;
    forecast_streams_fork(&f->cool);
    forecast_streams_fork(&f->hot);
    return status_ok();
}

static struct status beside_end(void *context)
{
    (void)context; /* launches know themselves that they are beside */
    return status_ok();
}

static struct status beside_join(void *context, int n_left)
{
    struct forecast *f = context;
    forecast_streams_join(&f->cool, n_left);
    forecast_streams_join(&f->hot, n_left);
    return status_ok();
}

static const struct device_beside beside = {beside_begin, beside_end, beside_join};

struct device forecast_device(const char *name, bool computes_in_fp8)
{
    return (struct device){.name = name,
                           .computes_in_f16 = true,
                           .takes_rounded_biases = true,
                           .computes_in_fp8 = computes_in_fp8,
                           .overhead_bytes = CUDA_OVERHEAD_BYTES,
                           .sums_in_attention = true,
                           .keeps_dropout_bits = true,
                           .graphs = &graphs,
                           .beside = &beside};
}

static struct forecast_kernel *kernel_of(struct forecast *f, const char *name)
{
    int i = 0;
    while (i < f->n_kernels && strcmp(f->kernels[i].name, name) != 0) {
        i++;
    }
    CHECK(i < FORECAST_KERNELS, "more than %d kernels", FORECAST_KERNELS);
    if (i == f->n_kernels) {
        f->kernels[f->n_kernels++] = (struct forecast_kernel){.name = name};
    }
    return &f->kernels[i];
}

static double price(void *forecast, const struct cuda_launch *l)
{
    return gpu_chip_seconds(((struct forecast *)forecast)->chip, l);
}

/* See forecast_hot_seconds. */
static struct gpu_phases slowed(struct gpu_phases p, double rate)
{
    return (struct gpu_phases){p.idle_s / rate, p.all_s / rate, p.last_s / rate, p.last};
}

static void launched(void *forecast, const struct cuda_launch *l)
{
    struct forecast *f = forecast;
    struct forecast_kernel *k = kernel_of(f, l->kernel);
    double seconds = price(f, l);
    k->n_launches++;
    k->seconds += seconds;
    k->bytes += l->bytes;
    k->flops += l->flops;
    f->n_launches++;
    f->call_seconds += seconds;
    f->product_seconds += l->flops > 0 ? seconds : 0;
    struct gpu_phases phases = gpu_chip_phases(f->chip, l);
    forecast_streams_launch(&f->cool, phases, l->beside);
    forecast_streams_launch(&f->hot, l->flops > 0 ? slowed(phases, f->chip->hot) : phases, l->beside);
}

static void before_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)x, (void)call;
    ((struct forecast *)w)->call_seconds = 0;
}

static void after_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    struct forecast *f = (struct forecast *)w;
    struct op_total *total = &f->totals[call->slot];
    (void)x;
    f->seconds[call->slot] += f->call_seconds;
    total->n_calls++;
    total->ns = (int64_t)(1e9 * f->seconds[call->slot] + 0.5);
    total->flops += call->flops;
    total->bytes += call->bytes;
}

void forecast_init(struct forecast *f, const struct gpu_chip *chip)
{
    *f = (struct forecast){.chip = chip};
    forecast_streams_init(&f->cool, chip);
    forecast_streams_init(&f->hot, chip);
    cuda_traffic_init(&f->traffic);
    f->traffic.self = f;
    f->traffic.launched = launched;
    f->traffic.seconds = price;
    op_watch_init(&f->watch, &f->traffic.table);
    f->watch.before = before_call;
    f->watch.after = after_call;
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        f->totals[i].op = op_watch_name(i);
    }
}

double forecast_seconds(const struct forecast *f)
{
    double seconds = 0;
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        seconds += f->seconds[i];
    }
    return seconds;
}

double forecast_hot_seconds(const struct forecast *f, double seconds)
{
    return seconds + f->product_seconds * (1 / f->chip->hot - 1);
}
