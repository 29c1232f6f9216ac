/* memory_fit: whether a planned trainer fits into the memory that is free, and if not, what would.
 *
 * Activations grow with the sequences of a micro-batch, so the answer is found by bisection over plans:
 * nothing is allocated to find it. */
#ifndef KILN_TRAIN_MEMORY_FIT_H
#define KILN_TRAIN_MEMORY_FIT_H

#include "train/trainer.h"

/* The flags that the configuration's limits come from. */
struct memory_cut {
    const char *flag;   /* "--train_batch_size": the flag that sets batch_size */
    int64_t batch_size; /* sequences in a step */
    int64_t n_micro;    /* micro-batches, by --gradient_accumulation_steps; 1 without such a flag */
    bool can_cut;       /* the command has --gradient_accumulation_steps */
    /* trainer_config.recompute with --checkpoint_activations; 0: it is on, or there is no such flag */
    int64_t recompute;
    int n_processes;    /* processes with the same plan that share the host's memory; 0: one */
    size_t batch_bytes; /* host memory of the batches, which the plan does not count; about the same however a
                         * step is cut into micro-batches */
};

/* Bytes of the device's memory that the plan needs. */
size_t memory_fit_device_bytes(const struct trainer_plan *plan, const struct device *device);

/* The most sequences of a micro-batch that fit into `budget` bytes, 0 if not even one does.  The limits of
 * `config` are for micro-batches of `n_sequences`; those of other sizes are in proportion. */
int64_t memory_fit_micro_size(const struct trainer_config *config, int64_t n_sequences, size_t budget);

/* STATUS_MEMORY if the plan of `config` needs more than its device has free, or if the copy for a save and
 * the batches need more than the host has free.  The message says how much is needed, how much is free, and
 * with which flags it would fit.  On the cpu the batches are in the device's memory. */
struct status memory_fit_check(const struct trainer_config *config, const struct trainer_plan *plan,
                               struct memory_cut cut);

/* Runs memory_fit_check for a command; with `dry_run` an error is only a warning, since the run may be meant
 * for another machine. */
struct status memory_fit_require(const struct trainer_config *config, const struct trainer_plan *plan,
                                 struct memory_cut cut, bool dry_run);

#endif
