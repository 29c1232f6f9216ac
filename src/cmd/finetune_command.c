#include "cmd/finetune_command.h"

#include "cmd/rank_run.h"

#include <stdlib.h>
#include <string.h>

/* Runs the task with the ranks' world and all flags in its options, which the copy is for. */
static struct status run_in(struct comm *world, const struct command *c, const struct finetune_task *task,
                            const void *args)
{
    struct finetune_options *o = malloc(task->options_bytes);
    FAIL_IF(o == NULL, STATUS_MEMORY, "out of memory for the options of a command");
    memcpy(o, args, task->options_bytes);
    json_t *flags = option_values(c, args);
    o->ranks.mesh = mesh_of_replicas(world);
    o->flags = flags;
    o->log_freq_given = option_was_given(c, args, "log_freq");
    o->do_predict = o->do_predict || (task->eval_predicts && o->do_eval);
    struct status s = finetune_run(task, o);
    json_decref(flags);
    free(o);
    return s;
}

struct status finetune_command_run(const struct command *c, const struct finetune_task *task,
                                   const void *args, const struct launcher_flags *launcher,
                                   void (*begun)(void))
{
    struct comm world;
    TRY(rank_run_begin(&world, c, args, launcher));
    if (begun != NULL) {
        begun();
    }
    return rank_run_leave(&world, run_in(&world, c, task, args));
}
