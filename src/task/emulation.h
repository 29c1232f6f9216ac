/* emulation: a pre-training run that is one rank of many, without the others (dist/comm_emulated.h): it takes
 * the memory and does the work of that rank, and counts what it would exchange.  What it learns is of its own
 * samples, with parts of the weights that nobody updates: so it saves nothing, and says so. */
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

/* Makes `world`, of `e`, for the ranks that were asked for; or leaves both alone.  `started`: those that a
 * launcher has started.  STATUS_USAGE: several were, or the flags do not fit each other. */
struct status emulation_open(struct comm_emulated *e, struct comm *world, const struct emulation_options *o,
                             const struct comm *started);

/* Turns off the saving of an emulated run.  STATUS_USAGE names a flag that needs checkpoints or other ranks,
 * a machine (`links`) without a row, or a directory that has some of a real run. */
struct status emulation_take(struct run_settings *o, const char *links, const struct comm *world);

/* STATUS_USAGE: this rank's slice of the words has rows of padding alone, so it has no loss without the
 * others. */
struct status emulation_check_slice(const struct network_config *c, const struct comm *world);

/* What a run has taken. */
struct emulation_result {
    int64_t n_steps;                  /* with the one before the clock ran */
    double step_s;                    /* the mean of those after the first; 0: there was only one */
    size_t peak, planned;             /* bytes of memory, as the line of every run has them */
    size_t base;                      /* of these, what was there before the model */
    struct comm_traffic traffic;      /* of all steps, among the ranks with the same part of the model */
    int64_t n_micro;                  /* micro-batches of this rank in a step */
    double peer_bytes, message_bytes; /* of all steps, that it sent to slices' peers and to other stages */
    const char *links;
};

/* Logs it, beside what `kiln plan` says of the rank with the largest shard, and the time of a step with what
 * the exchange would take.  `config`: this rank's. *event: the same as JSON, for log.jsonl. */
struct status emulation_tell(const struct emulation_result *r, const struct trainer_config *config,
                             const struct comm *world, json_t **event);

#endif
