/* emulation: a pre-training run that is one rank of many, without the others (dist/comm_emulated.h): it takes
 * the memory and does the work of that rank, and counts what it would exchange.  It learns from its own
 * samples alone, and parts of its weights are never updated: so it saves nothing, and logs that. */
#ifndef KILN_TASK_EMULATION_H
#define KILN_TASK_EMULATION_H

#include "core/json.h"
#include "dist/comm_emulated.h"
#include "task/run_settings.h"
#include "train/trainer.h"

struct emulation_options {
    int64_t world;     /* ranks; 0: none are emulated */
    int64_t rank;      /* the one that runs; -1: not given, so the first */
    const char *links; /* the machine of ops/machines.h whose links join the ranks */
};

/* Makes `world`, a view of `e`, for the emulated ranks that the options ask for; without them both stay
 * unchanged.  `started`: the ranks that a launcher has started.  STATUS_USAGE: a launcher has started
 * several, or the flags do not fit each other. */
struct status emulation_open(struct comm_emulated *e, struct comm *world, const struct emulation_options *o,
                             const struct comm *started);

/* Turns off the saving of an emulated run.  STATUS_USAGE names a flag that needs checkpoints or other ranks,
 * a machine (`links`) without a row, or a directory with checkpoints of a real run. */
struct status emulation_take(struct run_settings *o, const char *links, const struct comm *world);

/* STATUS_USAGE: this rank's slice of the words has rows of padding alone, so it has no loss without the
 * others. */
struct status emulation_check_slice(const struct network_config *c, const struct comm *world);

/* Memory, time and traffic of an emulated run. */
struct emulation_result {
    int64_t n_steps;             /* steps, with the one before the clock ran */
    double step_s;               /* mean time of the steps after the first; 0: there was only one */
    size_t peak, planned;        /* bytes of memory, as the line of every run has them */
    size_t base;                 /* host memory in both that was in use before the model; 0 on a device */
    struct comm_traffic traffic; /* sums over all steps, among the ranks with the same part of the model */
    int64_t n_micro;             /* micro-batches of this rank in a step */
    /* bytes that it sent in all steps, to slices' peers and to other stages */
    double peer_bytes, message_bytes;
    const char *links;
};

/* Logs the result, with what `kiln plan` says of the rank with the largest shard, and the time of a step with
 * the time that the exchange would take.  `config`: this rank's.  *event: the same as JSON, for log.jsonl. */
struct status emulation_tell(const struct emulation_result *r, const struct trainer_config *config,
                             const struct comm *world, json_t **event);

#endif
