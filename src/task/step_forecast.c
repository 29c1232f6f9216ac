#include "task/step_forecast.h"

static struct status count(struct step_forecast *f, const struct step_bench *b, const struct batch *batch,
                           bool whole_step)
{
    roofline_init(&f->ops, f->ceilings.products, f->ceilings.copy);
    return trainer_count(&b->config, &f->ops.watch.table, batch, whole_step);
}

struct status step_forecast_run(struct step_forecast *f, const struct step_bench *b,
                                const struct machine_rates *rates)
{
    struct batch_step step = {0};
    double products = machine_product_rate(rates, b->config.net.precision);
    *f = (struct step_forecast){.ceilings = {.products = products, .copy = rates->copy}};
    if (products <= 0) {
        return status_error(STATUS_USAGE, "the rate of products in %s is not known for %s: add --autocast",
                            precision_name(b->config.net.precision), b->config.net.device->name);
    }
    struct status s = step_bench_make(&step, b);
    if (!failed(s)) {
        s = count(f, b, step.micro, false);
        f->passes_s = roofline_seconds(&f->ops) / rates->reached;
    }
    if (!failed(s)) {
        s = count(f, b, step.micro, b->config.net.learns);
        f->step_s = roofline_seconds(&f->ops) / rates->reached;
    }
    batch_step_fini(&step);
    return s;
}
