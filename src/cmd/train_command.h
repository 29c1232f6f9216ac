/* train_command: the start of the commands that train, whose arguments begin with struct run_settings: they
 * find the ranks, make a mesh of them or emulate them, and run the task. */
#ifndef KILN_CMD_TRAIN_COMMAND_H
#define KILN_CMD_TRAIN_COMMAND_H

#include "cmd/rank_run.h"
#include "core/launcher.h"
#include "core/option.h"
#include "task/emulation.h"
#include "task/finetune.h"

struct train_command {
    const struct command *command;
    const struct launcher_flags *launcher;
    const struct mesh_flags *mesh;             /* NULL: the command makes none */
    const struct emulation_options *emulation; /* NULL: the command emulates none */
    bool replaces;        /* it replaces a script, whose environment variables are named in a log line */
    const char *log_freq; /* the flag that also says how often lines for people come; NULL: there is none */
    const struct finetune_task *task; /* task of finetune_command_run, else NULL */

    /* Trains with a copy of the arguments, whose settings have the ranks.  With a `task` all ranks have
     * agreed on the status then, and each ends by itself. */
    struct status (*train)(const struct train_command *t, void *args);
};

/* Finds the ranks, makes their mesh or emulates them, and trains with a copy of `args`.  Errors are those of
 * rank_run_begin, of the mesh or the emulation, and of `train`. */
struct status train_command_run(const struct train_command *t, const void *args);

/* Sets all flags by name and the command line in the settings, for `train`, once files of settings are read;
 * the caller json_decref's the flags after the run.  STATUS_USAGE unless they are the same on all ranks. */
struct status train_command_flags(json_t **flags, const struct train_command *t, void *args);

/* Names the environment variables of the replaced systems that are set and change nothing here, in a log
 * line. */
void train_command_tell_replaced(void);

/* Runs a task of fine-tuning, with whose options `args` begin. */
struct status finetune_command_run(const struct command *c, const struct finetune_task *task,
                                   const void *args, const struct launcher_flags *launcher, bool replaces);

#endif
