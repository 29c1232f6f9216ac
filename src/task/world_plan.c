#include "task/world_plan.h"

#include "ops/roofline.h"

#include <math.h>

struct ring_links world_links(const struct machine *machine, double given)
{
    double within = given > 0 ? given : machine->within, between = given > 0 ? given : machine->between;
    return (struct ring_links){machine->per_node, MACHINE_LINK_SHARE * within, MACHINE_LINK_SHARE * between};
}

struct status world_plan_bytes(struct world_plan *p, const struct world_setup *s, int64_t world, int stage,
                               int64_t n_micro)
{
    *p = (struct world_plan){.world = world, .stage = stage, .n_micro = n_micro};
    TRY(zero_plan(&p->zero, &s->bench.config, world, stage, n_micro));
    struct ring_cost once = ring_cost_of(&s->links, p->zero.reduced_bytes, world);
    double times = (double)p->zero.n_reductions * (stage == 0 ? 2 : 1); /* each its part, then all to all */
    p->reduce = ring_cost_times(once, times);
    p->gather = ring_cost_of(&s->links, p->zero.gathered_bytes, world);
    return status_ok();
}

static double product_rate(const struct machine_rates *r, struct precision p)
{
    return p.dtype != DTYPE_F32 ? r->half : p.allow_tf32 ? r->tf32 : r->fp32;
}

/* Adds up the ops of a micro-batch, or of a whole step with one. */
static struct status count_roofline(struct step_range *seconds, const struct step_bench *b,
                                    const struct machine_rates *rates, const struct batch *batch, bool whole)
{
    struct roofline r;
    struct trainer_config config = b->config;
    struct device plain = *config.device; /* whose pieces of work do not ask for a chip's recordings */
    plain.graphs = NULL;
    plain.beside = NULL;
    config.device = &plain;
    roofline_init(&r, product_rate(rates, b->config.precision), rates->copy);
    TRY(trainer_count(&config, NULL, &r.watch.table, batch, whole));
    *seconds = (struct step_range){r.seconds / rates->reached, r.seconds / rates->reached};
    return status_ok();
}

static struct status predict_by_rates(struct world_plan *p, const struct world_setup *s,
                                      const struct step_bench *b)
{
    struct batch_step step = {0};
    struct step_range whole = {0};
    if (product_rate(&s->rates, b->config.precision) <= 0) {
        return status_error(STATUS_USAGE, "the rate of products in %s is not known for %s: add --autocast",
                            precision_name(b->config.precision), s->machine->name);
    }
    struct status status = step_bench_make(&step, b);
    if (!failed(status)) {
        status = count_roofline(&p->passes, b, &s->rates, step.micro, false);
    }
    if (!failed(status)) {
        status = count_roofline(&whole, b, &s->rates, step.micro, true);
    }
    p->update = (struct step_range){whole.cool - p->passes.cool, whole.hot - p->passes.hot};
    batch_step_fini(&step);
    return status;
}

/* The update of a shard is that of ranks today, who round the weights of the others themselves. */
static struct status predict_by_kernels(struct world_plan *p, const struct step_bench *b,
                                        const struct gpu_chip *chip)
{
    struct step_forecast f;
    TRY(step_forecast_run(&f, b, chip));
    p->passes = f.passes;
    p->between_s = chip->step_s;
    p->update = (struct step_range){f.step.cool - f.passes.cool - chip->step_s,
                                    f.step.hot - f.passes.hot - chip->step_s};
    return status_ok();
}

double world_plan_left_s(const struct world_plan *p, double passes_s)
{
    double times = (double)p->zero.n_reductions, backward_s = 2.0 / 3 * passes_s;
    return fmax(0, p->reduce.seconds / times - backward_s) * times;
}

static void sum_up(struct world_plan *p, int64_t n_sequences)
{
    double n = (double)p->n_micro, all = (double)(n_sequences * p->n_micro * p->world);
    p->left_s = world_plan_left_s(p, p->passes.cool);
    double others = p->gather.seconds + p->between_s;
    p->step.cool = n * p->passes.cool + p->update.cool + p->left_s + others;
    p->step.hot = n * p->passes.hot + p->update.hot + p->reduce.seconds + others;
    p->sequences = (struct step_range){all / p->step.cool, all / p->step.hot};
}

struct status world_plan_times(struct world_plan *p, const struct world_setup *s)
{
    struct step_bench b = s->bench;
    const struct gpu_chip *chip;
    if (p->stage > 0 && p->world > 1) {
        b.config.n_shards = (int)p->world;
    }
    if (s->machine->chip != NULL) {
        TRY(gpu_chip_find(&chip, s->machine->chip));
        TRY(predict_by_kernels(p, &b, chip));
    } else {
        TRY(predict_by_rates(p, s, &b));
    }
    sum_up(p, s->bench.n_sequences);
    return status_ok();
}
