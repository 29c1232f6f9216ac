#include "nn/model_heads.h"

#define HEAD(OUTPUT, NAME, ROWS, WHAT) [MODEL_##OUTPUT] = {NAME, BATCH_OF_##ROWS, WHAT},
const struct model_head model_heads[MODEL_N_OUTPUTS] = {MODEL_OUTPUTS(HEAD)};

#define OUTPUTS(TASK, OUTPUTS) [MODEL_TASK_##TASK] = (OUTPUTS) | MODEL_HAS(HIDDEN),
static const unsigned outputs[] = {MODEL_TASKS(OUTPUTS)};

#define OF_A_TASK(TASK, OUTPUTS) | (OUTPUTS)
#define LISTED(OUTPUT, ...)      | MODEL_HAS(OUTPUT)
_Static_assert((MODEL_HAS(HIDDEN) MODEL_TASKS(OF_A_TASK)) == (MODEL_HAS_WORDS MODEL_OUTPUTS(LISTED)),
               "each output is of a task");

bool model_task_has(enum model_task task, enum model_output output)
{
    return (outputs[task] >> output & 1) != 0;
}
