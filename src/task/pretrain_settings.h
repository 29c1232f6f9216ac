/* pretrain_settings: what the flags of a pre-training run mean to its loop and its trainer, and which of them
 * cannot go together. */
#ifndef KILN_TASK_PRETRAIN_SETTINGS_H
#define KILN_TASK_PRETRAIN_SETTINGS_H

#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "task/pretrain_kind.h"
#include "task/run_state.h"

struct schedule pretrain_schedule(const struct pretrain_options *o);
struct optimizer pretrain_optimizer(const struct pretrain_options *o);

/* Layers that --checkpoint_activations recomputes together, at this --checkpoint_activations_interval. */
int64_t pretrain_recomputed_layers(int64_t interval, int64_t n_layers);
int64_t pretrain_recompute(const struct pretrain_options *o, const struct model *model);

/* What messages call the run's flags. */
struct pretrain_flag_names pretrain_flags(const struct pretrain_options *o);

/* The command if it is one of fine-tuning, for own_files.h; NULL: pre-training. */
const char *pretrain_tuning_command(const struct pretrain_options *o);

/* The configuration's name for people. */
const char *pretrain_config_name(const struct pretrain_options *o);

/* Held-out samples that evaluations of `eval_iters` batches have taken before step `step`. */
int64_t pretrain_validated_before(const struct pretrain_options *o, int64_t step);

/* The samples of a step, and those before it. */
struct batch_growth_step pretrain_samples_at(const struct pretrain_options *o, int64_t step);

/* Of a fresh run, without its data. */
struct run_state pretrain_state(const struct pretrain_options *o, struct precision precision);

/* In-phase step after which this run ends. */
int64_t pretrain_last_step(const struct pretrain_options *o);

/* Groups of micro-batches that ranks share a step in. */
int64_t pretrain_groups(const struct pretrain_options *o);

/* STATUS_USAGE names flags that contradict each other; and, of the first rank, the status of the output
 * directory. */
struct status pretrain_check(const struct pretrain_options *o);

/* STATUS_USAGE names a flag that cannot be with these ranks.  The batch is still that of one rank. */
struct status pretrain_check_ranks(const struct pretrain_options *o);

#endif
