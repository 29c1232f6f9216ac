/* finetune_command: what the fine-tuning commands do with their arguments: one body for all tasks. */
#ifndef KILN_CMD_FINETUNE_COMMAND_H
#define KILN_CMD_FINETUNE_COMMAND_H

#include "core/launcher.h"
#include "core/option.h"
#include "task/finetune.h"

/* Finds the ranks and runs the task.  `args`, the command's, begin with the task's options.  `begun` is
 * called once only the first rank logs; NULL: nothing is. */
struct status finetune_command_run(const struct command *c, const struct finetune_task *task,
                                   const void *args, const struct launcher_flags *launcher,
                                   void (*begun)(void));

#endif
