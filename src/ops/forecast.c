#include "ops/forecast.h"

#include <string.h>

static struct status no_graphs(void *context, const void *key, size_t key_bytes, enum device_work *work)
{
    (void)context, (void)key, (void)key_bytes;
    *work = DEVICE_WORK_RUN;
    return status_error(STATUS_INTERNAL, "a device that is only planned for records nothing");
}

static struct status no_end(void *context, bool abandon)
{
    (void)context, (void)abandon;
    return status_error(STATUS_INTERNAL, "a device that is only planned for records nothing");
}

/* Batches are rounded up for a device that records. */
static const struct device_graphs graphs = {no_graphs, no_end};

struct device forecast_device(const struct gpu_chip *chip)
{
    return (struct device){.name = chip->name,
                           .computes_in_f16 = true,
                           .takes_rounded_biases = true,
                           .computes_in_fp8 = chip->computes_in_fp8,
                           .sums_in_attention = true,
                           .graphs = &graphs};
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
