/* foreign_state: runs that the replaced scripts began, as training_states: ckpt_N.pt of NVIDIA and Habana,
 * and DeepSpeed's folders, found by their file "latest".
 *
 * What they have is read: weights (of fp16 runs the "master params", of ZeRO the parts of the ranks, which
 * are fp32), both moments, and the position.  What kiln cannot take over is named in one line. */
#ifndef KILN_MODEL_FOREIGN_STATE_H
#define KILN_MODEL_FOREIGN_STATE_H

#include "model/training_state.h"

/* s->kind stays NULL if the directory has none. */
struct status foreign_state_open(struct training_state *s, const struct training_state_place *place);

#endif
