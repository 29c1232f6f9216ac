#include "task/mesh_forecast.h"

#include <math.h>
#include <stdlib.h>

/* ---- links ---- */

struct ring_links mesh_forecast_links(const struct ring_links *l, int64_t stride)
{
    struct ring_links own = *l;
    own.per_node = l->per_node > stride ? l->per_node / stride : 1;
    return own;
}

/* Whether the first ranks of two stages are on one node. */
static bool are_on_one_node(const struct world_setup *s, const struct trainer_ranks *r, int a, int b)
{
    int64_t apart = (int64_t)r->shape.tp * r->shape.dp, n = s->links.per_node;
    return a * apart / n == b * apart / n;
}

double mesh_forecast_message_s(const struct world_setup *s, const struct trainer_ranks *r, int a, int b,
                               double bytes)
{
    return bytes / (are_on_one_node(s, r, a, b) ? s->links.within : s->links.between);
}

double mesh_forecast_ring_s(const struct ring_links *l, double sent, int n)
{
    return n == 1 ? 0 : ring_cost_of(l, sent * n / (n - 1), n).seconds;
}

/* ---- stages ---- */

/* Properties that decide how long a stage computes. */
struct shape {
    int64_t n_layers;
    bool is_first, is_last;
};

static struct shape shape_of(const struct param_part *part, int stage, int n_stages)
{
    struct shape s = {.is_first = stage == 0, .is_last = stage + 1 == n_stages};
    for (int i = 0; i < part->n_ranges; i++) {
        s.n_layers += part->ranges[i].end - part->ranges[i].first;
    }
    return s;
}

static struct status count_ops(struct mesh_stage_forecast *f, const struct world_setup *s,
                               const struct trainer_config *c)
{
    struct step_bench b = s->bench;
    struct step_forecast ops;
    b.config = *c;
    TRY(step_forecast_run(&ops, &b, &s->rates));
    f->passes_s = ops.passes_s;
    f->update_s = ops.step_s - ops.passes_s;
    return status_ok();
}

static void count_exchange(struct mesh_stage_forecast *f, const struct world_setup *s,
                           const struct trainer_config *c, const struct rank_plan *p)
{
    const struct trainer_ranks *r = &c->ranks;
    int stage = r->place.pp;
    struct ring_links slices = mesh_forecast_links(&s->links, 1),
                      data = mesh_forecast_links(&s->links, r->shape.tp);
    double n = (double)r->n_micro;
    f->slices_s = mesh_forecast_ring_s(&slices, p->tensor_bytes / n, r->shape.tp);
    f->replicas_s = ring_cost_of(&data, rank_plan_exchanged(p, c), r->shape.dp).seconds;
    f->message_s =
        mesh_forecast_message_s(s, r, stage, (stage + 1) % r->shape.pp, rank_plan_message_bytes(c));
}

/* Stages of the same shape compute for the same time, so each shape is counted once. */
static struct status forecast_stages(struct mesh_stage_forecast *f, struct shape *shapes,
                                     const struct world_setup *s, const struct trainer_config *config,
                                     const struct rank_plan *stages)
{
    for (int i = 0; i < config->ranks.shape.pp; i++) {
        struct trainer_config c = *config;
        int same = 0;
        c.ranks.place = (struct mesh_place){.pp = i};
        TRY(trainer_ranks_place(&c.ranks, &c.net));
        shapes[i] = shape_of(&c.net.part, i, c.ranks.shape.pp);
        while (same < i &&
               (shapes[same].n_layers != shapes[i].n_layers || shapes[same].is_first != shapes[i].is_first ||
                shapes[same].is_last != shapes[i].is_last)) {
            same++;
        }
        f[i] = f[same];
        if (same == i) {
            TRY(count_ops(&f[i], s, &c));
        }
        count_exchange(&f[i], s, &c, &stages[i]);
    }
    return status_ok();
}

/* ---- a step ---- */

/* A backward takes twice as long as a forward, and three times as long if it computes the forward again. */
static struct status take_turns(struct mesh_forecast *f, const struct trainer_config *c,
                                const struct mesh_stage_forecast *stages, double *scratch)
{
    struct pipeline_shape p = {c->ranks.shape.pp, trainer_ranks_chunks(&c->ranks), c->ranks.n_micro};
    size_t n = (size_t)p.n_stages;
    double *forward = scratch, *backward = scratch + n, *message = scratch + 2 * n;
    double share = c->net.recompute > 0 ? 1.0 / 4 : 1.0 / 3;
    for (size_t i = 0; i < n; i++) {
        double all = stages[i].passes_s + stages[i].slices_s;
        forward[i] = share * all;
        backward[i] = (1 - share) * all;
        message[i] = n > 1 ? stages[i].message_s : 0;
    }
    return pipeline_seconds(&p, &(struct pipeline_times){forward, backward, message}, &f->turns_s);
}

static void sum_up(struct mesh_forecast *f, const struct world_setup *s, const struct trainer_ranks *r,
                   const struct mesh_stage_forecast *stages, const struct rank_plan *plans)
{
    int last = r->shape.pp - 1;
    for (int i = 0; i <= last; i++) {
        bool slower = stages[i].passes_s + stages[i].slices_s > f->slowest.passes_s + f->slowest.slices_s;
        f->slowest = i == 0 || slower ? stages[i] : f->slowest;
        f->replicas_s = fmax(f->replicas_s, stages[i].replicas_s);
        f->update_s = fmax(f->update_s, stages[i].update_s);
    }
    f->tied_s = last == 0 ? 0
                          : mesh_forecast_message_s(s, r, 0, last, plans[0].tied_bytes) +
                                mesh_forecast_message_s(s, r, 0, last, plans[last].tied_bytes);
    f->step_s = f->turns_s + f->tied_s + f->replicas_s + f->update_s;
}

struct status mesh_forecast_run(struct mesh_forecast *f, const struct world_setup *s,
                                const struct trainer_config *c, const struct rank_plan *stages)
{
    size_t n = (size_t)c->ranks.shape.pp;
    struct mesh_stage_forecast *own = calloc(n, sizeof *own);
    struct shape *shapes = calloc(n, sizeof *shapes);
    double *scratch = calloc(3 * n, sizeof *scratch);
    struct status status = own != NULL && shapes != NULL && scratch != NULL
                               ? forecast_stages(own, shapes, s, c, stages)
                               : status_error(STATUS_MEMORY, "out of memory for %zu stages", n);
    *f = (struct mesh_forecast){0};
    if (!failed(status)) {
        status = take_turns(f, c, own, scratch);
        sum_up(f, s, &c->ranks, own, stages);
    }
    free(own);
    free(shapes);
    free(scratch);
    return status;
}

double mesh_forecast_idle(const struct mesh_forecast *f, const struct trainer_config *c)
{
    double busy = (double)c->ranks.n_micro * (f->slowest.passes_s + f->slowest.slices_s);
    return fmax(0, f->turns_s - busy) / f->step_s;
}
