#include "task/world_plan.h"

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
    struct trainer_config c = s->bench.config;
    c.ranks.shape.dp = (int)world;
    c.ranks.zero_stage = stage;
    c.ranks.n_micro = n_micro;
    TRY(rank_plan(&p->rank, &c));
    struct ring_cost once = ring_cost_of(&s->links, p->rank.reduced_bytes, world);
    double times = (double)p->rank.n_reductions * (stage == 0 ? 2 : 1); /* one part each, then all to all */
    p->reduce = ring_cost_times(once, times);
    p->gather = ring_cost_of(&s->links, p->rank.gathered_bytes, world);
    return status_ok();
}

double world_plan_left_s(const struct world_plan *p, double passes_s)
{
    double times = (double)p->rank.n_reductions, backward_s = 2.0 / 3 * passes_s;
    return fmax(0, p->reduce.seconds / times - backward_s) * times;
}

static void sum_up(struct world_plan *p, int64_t n_sequences)
{
    double all = (double)(n_sequences * p->n_micro * p->world);
    double alone_s = (double)p->n_micro * p->passes_s + p->update_s + p->gather.seconds;
    p->left_s = world_plan_left_s(p, p->passes_s);
    p->step_s = (struct world_range){alone_s + p->left_s, alone_s + p->reduce.seconds};
    p->sequences = (struct world_range){all / p->step_s.fast, all / p->step_s.slow};
}

struct status world_plan_times(struct world_plan *p, const struct world_setup *s)
{
    struct step_bench b = s->bench;
    struct step_forecast f;
    b.config.ranks = (struct trainer_ranks){.shape = {1, 1, (int)p->world}, .zero_stage = p->stage > 0};
    TRY(step_forecast_run(&f, &b, &s->rates));
    p->passes_s = f.passes_s;
    p->update_s = f.step_s - f.passes_s;
    sum_up(p, s->bench.n_sequences);
    return status_ok();
}
