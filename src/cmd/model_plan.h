/* model_plan: what --dry-run says of the commands that open a model. */
#ifndef KILN_CMD_MODEL_PLAN_H
#define KILN_CMD_MODEL_PLAN_H

#include "nn/bert.h"

/* Checks the model directory for the task and prints its parameters, memory and work; reads no weights. */
struct status model_plan_print(const char *model, enum bert_task task);

#endif
