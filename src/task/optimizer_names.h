/* optimizer_names: optimizers by the names that the replaced scripts give them. */
#ifndef KILN_TASK_OPTIMIZER_NAMES_H
#define KILN_TASK_OPTIMIZER_NAMES_H

#include "core/status.h"
#include "optim/optimizer.h"

/* All names, as the choices of a flag. */
#define OPTIMIZER_ALL_NAMES OPTIMIZER_NAMES "|nvlamb|fused_lamb|fused_adam|fused_adamw"

/* Finds kiln's name for `given`, which `where` says; a log line explains another name.  STATUS_UNAVAILABLE:
 * kiln does not have this optimizer yet; STATUS_USAGE: no optimizer has this name. */
struct status optimizer_names_find(const char **name, const char *given, const char *where);

#endif
