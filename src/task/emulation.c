#include "task/emulation.h"

#include "core/log.h"
#include "model/checkpoint.h"
#include "task/pretrain.h"
#include "task/world_plan.h"

#include <inttypes.h>
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
    if (started->size > 1) {
        return status_error(STATUS_USAGE,
                            "--emulate_world %" PRId64
                            " runs one process, but %d were started: leave out mpirun or srun, or the flag",
                            o->world, started->size);
    }
    if (rank >= o->world) {
        return status_error(STATUS_USAGE,
                            "--distributed_emulation_rank %" PRId64 " is not one of the ranks 0 to %" PRId64
                            " of --emulate_world",
                            rank, o->world - 1);
    }
    *e = (struct comm_emulated){.rank = (int)rank, .size = (int)o->world};
    *world = comm_emulated_rank(e);
    return status_ok();
}

static struct status check_directory(const char *directory)
{
    struct checkpoint_steps list;
    TRY(checkpoint_dir_list(&list, directory, "ckpt_"));
    int n = list.n;
    free(list.steps);
    return n == 0 ? status_ok()
                  : status_error(STATUS_USAGE,
                                 "--emulate_world: %s has checkpoints of a real run, whose logs this one "
                                 "would continue: give another --output_dir",
                                 directory);
}

struct status emulation_take(struct pretrain_options *o, const struct comm *world)
{
    const struct {
        bool given;
        const char *flag;
    } needs[] = {{o->early.patience > 0, "early_stopping_patience"},
                 {o->average_last > 0, "average_last"},
                 {o->health.spike_z > 0, "spike_z"},
                 {o->ranks.replica_check_steps > 0, "replica_check_steps"}};
    if (world->emulated == NULL) {
        return status_ok();
    }
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if (needs[i].given) {
            return status_error(STATUS_USAGE,
                                "--%s needs %s, and --emulate_world has none: leave out one of the two",
                                needs[i].flag, i < 3 ? "checkpoints" : "other ranks");
        }
    }
    const struct machine *links;
    TRY(status_context(machine_find(&links, o->emulation.links), "--emulate_links"));
    o->skip_checkpoint = true;
    log_warning("emulation: this is rank %d of %d, without the others: what it learns is meaningless, and no "
                "checkpoint is written",
                world->rank, world->size);
    return check_directory(o->output_dir);
}

static double mib(double bytes)
{
    return bytes / 0x1p20;
}

/* Of the world that this rank is one of: bytes, and the time of the exchange. */
static struct status plan_of(struct world_plan *p, const struct emulation_result *r,
                             const struct trainer_config *config, const struct comm *world)
{
    struct world_setup setup = {.bench.config = *config};
    setup.bench.config.n_shards = setup.bench.config.shard = 0; /* the plan shares */
    TRY(machine_find(&setup.machine, r->links));
    setup.links = world_links(setup.machine, 0);
    return world_plan_bytes(p, &setup, world->size, r->zero_stage, r->n_micro);
}

struct status emulation_tell(const struct emulation_result *r, const struct trainer_config *config,
                             const struct comm *world, json_t **event)
{
    struct world_plan p;
    TRY(plan_of(&p, r, config, world));
    double n = r->n_steps > 0 ? (double)r->n_steps : 1, reduced = r->traffic.reduced_bytes / n,
           gathered = r->traffic.gathered_bytes / n;
    double plan_reduced = p.zero.reduced_bytes * (double)p.zero.n_reductions,
           largest = (double)(p.zero.device_bytes + r->base);
    double whole_s = p.reduce.seconds + p.gather.seconds,
           left_s = world_plan_left_s(&p, r->step_s / (double)r->n_micro) + p.gather.seconds;
    log_info("emulation: memory of rank %d of %d, ZeRO stage %d: %.1f MiB; planned %.1f MiB, and %.1f MiB "
             "on the rank with the most (`kiln plan --world %d`)",
             world->rank, world->size, r->zero_stage, mib((double)r->peak), mib((double)r->planned),
             mib(largest), world->size);
    log_info("emulation: a step exchanges %.3f MiB of gradients, and %.3f MiB of weights and sums for norms; "
             "`kiln plan` says %.3f and %.3f",
             mib(reduced), mib(gathered), mib(plan_reduced), mib(p.zero.gathered_bytes));
    log_info(
        "emulation: a step of %" PRId64
        " micro-batches takes %.4f s on this rank; with the exchange between %d ranks, predicted for the "
        "links of %s (--emulate_links), %.4f s if the backward hides it, else %.4f s; nothing was saved",
        r->n_micro, r->step_s, world->size, r->links, r->step_s + left_s, r->step_s + whole_s);
    *event =
        json_pack("{s:i, s:i, s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "rank", world->rank,
                  "world", world->size, "zero_stage", r->zero_stage, "peak_bytes", (json_int_t)r->peak,
                  "planned_bytes", (json_int_t)r->planned, "plan_bytes_of_largest", largest, "step_seconds",
                  r->step_s, "reduced_bytes_a_step", reduced, "gathered_bytes_a_step", gathered,
                  "plan_reduced_bytes", plan_reduced, "plan_gathered_bytes", p.zero.gathered_bytes,
                  "exchange_seconds", whole_s, "exchange_seconds_left", left_s);
    return status_ok();
}
