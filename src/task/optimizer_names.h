/* optimizer_names: optimizers by the names that the replaced scripts give them. */
#ifndef KILN_TASK_OPTIMIZER_NAMES_H
#define KILN_TASK_OPTIMIZER_NAMES_H

#include "core/status.h"
#include "optim/optimizer.h"

/* As a flag's choices. */
#define OPTIMIZER_ALL_NAMES OPTIMIZER_NAMES "|nvlamb|fused_lamb|fused_adam|fused_adamw"

/* kiln's name for `given`, which `where` says: a log line says why it is another.  STATUS_UNAVAILABLE: kiln
 * does not have this one yet; STATUS_USAGE: nobody does. */
struct status optimizer_names_find(const char **name, const char *given, const char *where);

#endif
