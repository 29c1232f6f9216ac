/* world_plan: what a pre-training step of `world` devices takes: bytes of a device, what it sends, and a
 * predicted time.  Nothing is measured, except the rates of the cpu, and nothing is run.
 *
 * The time of a step is that of its micro-batches, the update of a device's shard, the sums of gradients and
 * the gathering of what the update left elsewhere.  Two times are given: `slow` as if nothing overlapped, and
 * `fast` with sums hidden by the backward of the last micro-batch (at stage 2 of each), which is two thirds
 * of its passes. */
#ifndef KILN_TASK_WORLD_PLAN_H
#define KILN_TASK_WORLD_PLAN_H

#include "dist/ring_cost.h"
#include "ops/machines.h"
#include "task/step_bench.h"
#include "train/rank_plan.h"

struct world_setup {
    const char *config; /* file of the model's configuration, for reports */
    const struct machine *machine;
    struct machine_rates rates; /* the machine's, or measured, or given */
    struct ring_links links;
    /* bench of one micro-batch, planned by step_bench_plan for one rank that shares nothing */
    struct step_bench bench;
};

struct world_range {
    double fast, slow;
};

struct world_plan {
    int64_t world, n_micro; /* micro-batches of a device in a step */
    int stage;
    struct rank_plan rank;
    struct ring_cost reduce, gather; /* exchanges of a complete step */
    double passes_s, update_s;       /* passes of one micro-batch */
    double left_s;                   /* seconds of the sums that the backward does not hide */
    struct world_range step_s;
    struct world_range sequences; /* a second, of all devices */
};

/* Links of the machine's devices, at the share of their rate that collectives reach.  `given`: bytes a second
 * of all of them; 0: the machine's. */
struct ring_links world_links(const struct machine *machine, double given);

/* Plans memory and traffic. */
struct status world_plan_bytes(struct world_plan *p, const struct world_setup *s, int64_t world, int stage,
                               int64_t n_micro);

/* Seconds of the step's sums of gradients that are left when the backward of a micro-batch, whose passes take
 * `passes_s`, hides its sums. */
double world_plan_left_s(const struct world_plan *p, double passes_s);

/* Plans the times, after world_plan_bytes.  STATUS_USAGE: the rate of such products is not known. */
struct status world_plan_times(struct world_plan *p, const struct world_setup *s);

#endif
