/* megatron_state: runs that Megatron-DeepSpeed began, as training_states: a universal checkpoint, or the
 * folder of a step with the states of the optimizers of all ranks.
 *
 * Weights in fp32 and moments go through the names, joins and slices that the weights of models go
 * through. The position is the iteration; its samples are those of the run's flags. */
#ifndef KILN_MODEL_MEGATRON_STATE_H
#define KILN_MODEL_MEGATRON_STATE_H

#include "model/training_state.h"

/* Whether a folder is of such a run. */
bool megatron_state_is_one(const char *folder);

/* Opens a folder; place->given has the run's configuration.  STATUS_DATA: it is of another model, or half a
 * checkpoint. */
struct status megatron_state_open(struct training_state *s, const char *folder,
                                  const struct training_state_place *place);

/* The universal checkpoint in, or named by "latest_universal" of, place->directory.  STATUS_NO_CHECKPOINT:
 * there is none. */
struct status megatron_state_open_universal(struct training_state *s,
                                            const struct training_state_place *place);

#endif
