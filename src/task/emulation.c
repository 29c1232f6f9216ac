#include "task/emulation.h"

#include "core/log.h"
#include "task/mesh_forecast.h"
#include "task/own_files.h"
#include "task/pretrain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct status emulation_open(struct comm_emulated *e, struct comm *world, const struct emulation_options *o,
                             const struct comm *started)
{
    int64_t rank = o->rank < 0 ? 0 : o->rank;
    if (o->world == 0) {
        return o->rank < 0
                   ? status_ok()
                   : status_error(STATUS_USAGE,
                                  "--distributed_emulation_rank %" PRId64
                                  " needs --emulate_world N, the number of ranks; it needs no launcher",
                                  o->rank);
    }
    FAIL_IF(started->size > 1, STATUS_USAGE,
            "--emulate_world %" PRId64
            " runs one process, but %d were started: leave out mpirun or srun, or the flag",
            o->world, started->size);
    FAIL_IF(rank >= o->world, STATUS_USAGE,
            "--distributed_emulation_rank %" PRId64 " is not one of the ranks 0 to %" PRId64
            " of --emulate_world",
            rank, o->world - 1);
    *e = (struct comm_emulated){.rank = (int)rank, .size = (int)o->world};
    *world = comm_emulated_rank(e);
    return status_ok();
}

static struct status check_directory(const char *output_dir)
{
    struct checkpoint_steps list;
    char directory[CHECKPOINT_PATH_BYTES];
    TRY(own_files_checkpoints(directory, output_dir, NULL));
    TRY(checkpoint_dir_list(&list, directory, "ckpt_"));
    int n = list.n;
    free(list.steps);
    FAIL_IF(n != 0, STATUS_USAGE,
            "--emulate_world: %s has checkpoints of a real run, whose logs this one would continue: give "
            "another --output_dir",
            directory);
    return status_ok();
}

struct status emulation_take(struct run_settings *o, const char *links, const struct comm *world)
{
    const struct {
        bool given;
        const char *flag;
    } needs[] = {{o->early.patience > 0, "early_stopping_patience"},
                 {o->health.spike_z > 0, "spike_z"},
                 {o->ranks.replica_check_steps > 0, "replica_check_steps"}};
    if (world->emulated == NULL) {
        return status_ok();
    }
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        FAIL_IF(needs[i].given, STATUS_USAGE,
                "--%s needs %s, and --emulate_world has none: leave out one of the two", needs[i].flag,
                i < 2 ? "checkpoints" : "other ranks");
    }
    const struct machine *machine;
    TRY(status_context(machine_find(&machine, links), "--emulate_links"));
    o->skip_checkpoint = true;
    log_warning("emulation: this is rank %d of %d, without the others: what it learns is meaningless, and no "
                "checkpoint is written",
                world->rank, world->size);
    return check_directory(o->common.output_dir);
}

struct status emulation_check_slice(const struct network_config *c, const struct comm *world)
{
    const struct model *m = c->model;
    struct param_table t = {.part = c->part};
    if (world->emulated == NULL || m->tied == NULL || param_part_slices(&c->part) == 1 ||
        !model_part_has_heads(m, &c->part)) {
        return status_ok();
    }
    t.part.tied = m->tied;
    struct status s = m->type->declare(m, &t);
    if (!failed(s) && param_table_find(&t, m->tied)->first[0] >= m->n_words) {
        s = status_error(STATUS_USAGE,
                         "rank %d of --emulate_world has none of the %" PRId64
                         " words, but rows of padding, so "
                         "it has no loss without the other slices: run as a lower rank",
                         world->rank, m->n_words);
    }
    param_table_fini(&t);
    return s;
}

static double mib(double bytes)
{
    return bytes / 0x1p20;
}

static struct status set_up(struct world_setup *s, const struct emulation_result *r,
                            const struct trainer_config *config)
{
    *s = (struct world_setup){.bench.config = *config};
    TRY(machine_find(&s->machine, r->links));
    s->links = world_links(s->machine, 0);
    return status_ok();
}

/* Plans the ranks with the same part of the model: bytes, and the time of the exchange. */
static struct status plan_of(struct world_plan *p, const struct emulation_result *r,
                             const struct world_setup *setup)
{
    struct world_setup s = *setup;
    const struct trainer_ranks *ranks = &setup->bench.config.ranks;
    s.links = mesh_forecast_links(&setup->links, ranks->shape.tp);
    return world_plan_bytes(p, &s, ranks->shape.dp, ranks->zero_stage, r->n_micro);
}

/* Share of one step in what was counted over all steps. */
static double of_step(const struct emulation_result *r, double bytes)
{
    return bytes / (r->n_steps > 0 ? (double)r->n_steps : 1);
}

/* ---- a mesh ---- */

/* Costs that a mesh adds to a step: bytes to the other slices and stages, counted and planned; the time of
 * both; and the bubble, the time that a stage waits as a fraction of its work. */
struct mesh_share {
    double slice_bytes, stage_bytes, plan_slice_bytes, plan_stage_bytes;
    double slices_s, stages_s, bubble;
};

static struct status find_mesh_share(struct mesh_share *m, const struct emulation_result *r,
                                     const struct world_setup *setup)
{
    struct rank_plan p;
    struct trainer_config c = setup->bench.config;
    struct trainer_ranks *ranks = &c.ranks;
    *m = (struct mesh_share){.slice_bytes = of_step(r, r->peer_bytes),
                             .stage_bytes = of_step(r, r->message_bytes)};
    if (!mesh_cuts_model(ranks->shape)) {
        return status_ok();
    }
    int stage = ranks->place.pp, n_stages = ranks->shape.pp;
    ranks->place = (struct mesh_place){.pp = stage};
    ranks->n_micro = r->n_micro;
    TRY(rank_plan(&p, &c));
    m->plan_slice_bytes = p.tensor_bytes;
    m->plan_stage_bytes = p.pipe_bytes + p.tied_bytes;
    m->slices_s = mesh_forecast_ring_s(&setup->links, m->slice_bytes, ranks->shape.tp);
    m->stages_s = mesh_forecast_message_s(setup, ranks, stage, (stage + 1) % n_stages, m->stage_bytes);
    struct pipeline_shape shape = {n_stages, trainer_ranks_chunks(ranks), r->n_micro};
    return n_stages > 1 ? pipeline_bubble(&shape, 1, 2, &m->bubble) : status_ok();
}

static void tell_mesh(const struct trainer_ranks *ranks, const struct mesh_share *m, const struct comm *world,
                      json_t *event)
{
    struct mesh_shape s = ranks->shape;
    struct mesh_place at = ranks->place;
    if (!mesh_cuts_model(s)) {
        return;
    }
    log_info(
        "emulation: rank %d is slice %d of %d, in stage %d of %d, of replica %d of %d; a step sends %.3f MiB "
        "to the other slices and %.3f MiB to other stages; `kiln plan --mesh %dx%dx%d` says %.3f and %.3f",
        world->rank, at.tp, s.tp, at.pp, s.pp, at.dp, s.dp, mib(m->slice_bytes), mib(m->stage_bytes), s.tp,
        s.pp, s.dp, mib(m->plan_slice_bytes), mib(m->plan_stage_bytes));
    log_info("emulation: in the times of the exchange are %.4f s between slices, %.4f s between stages if "
             "they are not hidden, and a bubble of %.1f %% of a stage's work",
             m->slices_s, m->stages_s, 100 * m->bubble);
    json_t *more = json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "slice", at.tp, "stage",
                             at.pp, "replica", at.dp, "slice_bytes_a_step", m->slice_bytes,
                             "stage_bytes_a_step", m->stage_bytes, "plan_slice_bytes", m->plan_slice_bytes,
                             "plan_stage_bytes", m->plan_stage_bytes, "slices_seconds", m->slices_s,
                             "stages_seconds", m->stages_s, "bubble", m->bubble);
    json_object_update(event, more);
    json_decref(more);
}

/* ---- the end of a run ---- */

static void tell_memory(const struct emulation_result *r, const struct trainer_ranks *ranks,
                        const struct comm *world, double largest)
{
    struct mesh_shape s = ranks->shape;
    char plan[64];
    if (mesh_cuts_model(s)) {
        snprintf(plan, sizeof plan, "--mesh %dx%dx%d", s.tp, s.pp, s.dp);
    } else {
        snprintf(plan, sizeof plan, "--world %d", s.dp);
    }
    log_info("emulation: memory of rank %d of %d, ZeRO stage %d: %.1f MiB; planned %.1f MiB, and %.1f MiB on "
             "the rank with the most (`kiln plan %s`)",
             world->rank, world->size, ranks->zero_stage, mib((double)r->peak), mib((double)r->planned),
             mib(largest), plan);
}

struct status emulation_tell(const struct emulation_result *r, const struct trainer_config *config,
                             const struct comm *world, json_t **event)
{
    struct world_setup setup;
    struct world_plan p;
    struct mesh_share m;
    TRY(set_up(&setup, r, config));
    TRY(plan_of(&p, r, &setup));
    TRY(find_mesh_share(&m, r, &setup));
    double reduced = of_step(r, r->traffic.reduced_bytes), gathered = of_step(r, r->traffic.gathered_bytes);
    bool alone = p.world == 1; /* no other rank has its part of the model */
    double plan_reduced = alone ? 0 : p.rank.reduced_bytes * (double)p.rank.n_reductions,
           plan_gathered = alone ? 0 : p.rank.gathered_bytes,
           largest = (double)(p.rank.device_bytes + r->base +
                              (config->net.device->is_host ? p.rank.batch_bytes : 0));
    double passes_s = r->step_s / (double)r->n_micro,
           wait_s = (r->step_s + m.slices_s) * (1 + m.bubble) - r->step_s;
    double whole_s = p.reduce.seconds + p.gather.seconds + m.stages_s + wait_s,
           left_s = world_plan_left_s(&p, passes_s) + p.gather.seconds + wait_s;
    tell_memory(r, &config->ranks, world, largest);
    log_info("emulation: a step exchanges %.3f MiB of gradients, and %.3f MiB of weights and sums for norms; "
             "`kiln plan` says %.3f and %.3f",
             mib(reduced), mib(gathered), mib(plan_reduced), mib(plan_gathered));
    log_info(
        "emulation: a step of %" PRId64
        " micro-batches takes %.4f s on this rank; with the exchange between %d ranks, predicted for the "
        "links of %s (--emulate_links), %.4f s if the backward hides it, else %.4f s; nothing was saved",
        r->n_micro, r->step_s, world->size, r->links, r->step_s + left_s, r->step_s + whole_s);
    *event = json_pack("{s:i, s:i, s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "rank",
                       world->rank, "world", world->size, "zero_stage", config->ranks.zero_stage,
                       "peak_bytes", (json_int_t)r->peak, "planned_bytes", (json_int_t)r->planned,
                       "plan_bytes_of_largest", largest, "step_seconds", r->step_s, "reduced_bytes_a_step",
                       reduced, "gathered_bytes_a_step", gathered, "plan_reduced_bytes", plan_reduced,
                       "plan_gathered_bytes", plan_gathered, "exchange_seconds", whole_s,
                       "exchange_seconds_left", left_s);
    tell_mesh(&config->ranks, &m, world, *event);
    return status_ok();
}
