#include "task/step_forecast.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct status count(struct step_forecast *f, const struct step_bench *b, const struct gpu_chip *chip,
                           const struct batch *batch, bool whole_step)
{
    forecast_init(&f->ops, chip);
    return trainer_count(&b->config, &f->ops, &f->ops.watch.table, batch, whole_step);
}

static struct step_range in_order(const struct forecast *f, double more)
{
    double seconds = forecast_seconds(f) + more;
    return (struct step_range){seconds, forecast_hot_seconds(f, seconds)};
}

static struct step_range with_beside(const struct forecast *f, double more)
{
    return (struct step_range){forecast_streams_seconds(&f->cool) + more,
                               forecast_streams_seconds(&f->hot) + more};
}

static struct op_ceilings ceilings_of(const struct gpu_chip *chip, struct precision precision)
{
    double best = 0;
    for (int i = 0; i < chip->n_products; i++) {
        const struct gpu_product *p = &chip->products[i];
        best = p->fp8 == precision.fp8 && p->tflops > best ? p->tflops : best;
    }
    best = precision.dtype != DTYPE_F32 ? best : precision.allow_tf32 ? chip->tf32_tflops : chip->fp32_tflops;
    return (struct op_ceilings){.products = 1e12 * best, .copy = chip->copy};
}

struct status step_forecast_run(struct step_forecast *f, const struct step_bench *b,
                                const struct gpu_chip *chip)
{
    struct batch_step step = {0};
    bool learns = b->config.training;
    *f = (struct step_forecast){.ceilings = ceilings_of(chip, b->config.precision)};
    struct status s = step_bench_make(&step, b);
    if (!failed(s)) {
        s = count(f, b, chip, step.micro, false);
        f->passes = in_order(&f->ops, 0);
        f->passes_beside = with_beside(&f->ops, 0);
    }
    if (!failed(s)) {
        s = count(f, b, chip, step.micro, learns);
        f->step = in_order(&f->ops, chip->step_s);
        f->step_beside = with_beside(&f->ops, chip->step_s);
    }
    batch_step_fini(&step);
    return s;
}

static int longest_first(const void *a, const void *b)
{
    const struct forecast_kernel *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

void step_forecast_append(struct buf *text, const struct step_forecast *f)
{
    struct forecast_kernel sorted[FORECAST_KERNELS];
    op_report_append(text, f->ops.totals, f->step.cool, &f->ceilings);
    memcpy(sorted, f->ops.kernels, sizeof sorted);
    qsort(sorted, (size_t)f->ops.n_kernels, sizeof sorted[0], longest_first);
    buf_printf(text, "\n%-36s%8s%11s%9s%9s%9s   peak\n", "kernel", "launches", "ms", "share", "GB moved",
               "GB/s");
    for (int i = 0; i < f->ops.n_kernels; i++) {
        const struct forecast_kernel *k = &sorted[i];
        buf_printf(text, "%-36s%8" PRId64 "%11.2f%7.1f %%%9.2f%9.1f%5.0f %%\n", k->name, k->n_launches,
                   1e3 * k->seconds, 100 * k->seconds / f->step.cool, 1e-9 * k->bytes,
                   1e-9 * k->bytes / k->seconds, 100 * k->bytes / k->seconds / f->ceilings.copy);
    }
    buf_printf(text, "%-36s%8" PRId64 "\n\n", "all kernels", f->ops.n_launches);
}
