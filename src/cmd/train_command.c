#include "cmd/train_command.h"

#include "core/buf.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

extern char **environ; /* environ(7) */

/* Variables of Gaudi's software and of PyTorch, by the beginnings of their names, and the single ones that
 * the documents set.  RANK, WORLD_SIZE and their kin do have a meaning (core/launcher.h). */
static const char *const prefixes[] = {"PT_",
                                       "HCCL_",
                                       "HCL_",
                                       "HABANA_",
                                       "TORCH_",
                                       "LD_PRELOAD=",
                                       "MASTER_ADDR=",
                                       "MASTER_PORT=",
                                       "EXPERIMENTAL_WEIGHT_SHARING=",
                                       "ENABLE_EXPERIMENTAL_FLAGS=",
                                       "TENSORS_KEEP_ALLOCATED="};

static bool is_replaced(const char *variable)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

void train_command_tell_replaced(void)
{
    struct buf names = {0};
    for (char **v = environ; *v != NULL; v++) {
        if (is_replaced(*v)) {
            buf_printf(&names, "%s%.*s", names.n == 0 ? "" : ", ", (int)strcspn(*v, "="), *v);
        }
    }
    if (names.n > 0 && !failed(buf_status(&names))) {
        log_info("environment variables without a meaning here: %s", buf_text(&names));
    }
    buf_fini(&names);
}

/* NULL if memory runs out. */
static char *command_line(const struct command *c, const void *args)
{
    struct buf line = {0};
    option_append_line(&line, c, args);
    char *text = line.failed ? NULL : strdup(buf_text(&line));
    buf_fini(&line);
    return text;
}

struct status train_command_flags(json_t **flags, const struct train_command *t, void *args)
{
    struct run_settings *s = args;
    struct comm world = rank_options_world(&s->ranks);
    TRY(rank_run_compare_flags(&world, t->command, args));
    s->flags = *flags = option_values(t->command, args);
    s->command = command_line(t->command, args);
    return status_ok();
}

static struct status train_in_mesh(const struct train_command *t, struct run_settings *s,
                                   const struct comm *world)
{
    if (t->mesh == NULL) {
        s->ranks.mesh = mesh_of_replicas(world);
        return t->train(t, s);
    }
    TRY(rank_run_mesh(&s->ranks.mesh, t->mesh, world, !s->common.dry_run));
    struct status status = t->train(t, s);
    mesh_close(&s->ranks.mesh);
    return status;
}

static struct status train(const struct train_command *t, const void *args, const struct comm *started)
{
    struct comm world = *started;
    struct comm_emulated emulated;
    if (t->emulation != NULL) {
        TRY(emulation_open(&emulated, &world, t->emulation, started));
    }
    struct run_settings *s = malloc(t->command->args_bytes);
    FAIL_IF(s == NULL, STATUS_MEMORY, "out of memory for the options of a command");
    memcpy(s, args, t->command->args_bytes);
    s->log_freq_given = t->log_freq != NULL && option_was_given(t->command, args, t->log_freq);
    if (t->replaces) {
        train_command_tell_replaced();
    }
    struct status status = train_in_mesh(t, s, &world);
    free(s->command);
    free(s);
    return status;
}

struct status train_command_run(const struct train_command *t, const void *args)
{
    struct comm world;
    TRY(rank_run_begin(&world, t->command, args, t->launcher));
    struct status s = train(t, args, &world);
    return t->task != NULL ? rank_run_leave(&world, s) : rank_run_end(&world, s);
}

static struct status finetune(const struct train_command *t, void *args)
{
    struct finetune_options *o = args;
    json_t *flags;
    TRY(train_command_flags(&flags, t, args));
    o->do_predict = o->do_predict || (t->task->eval_predicts && o->do_eval);
    struct status s = finetune_run(t->task, o);
    json_decref(flags);
    return s;
}

struct status finetune_command_run(const struct command *c, const struct finetune_task *task,
                                   const void *args, const struct launcher_flags *launcher, bool replaces)
{
    const struct train_command t = {.command = c,
                                    .launcher = launcher,
                                    .replaces = replaces,
                                    .log_freq = "log_freq",
                                    .task = task,
                                    .train = finetune};
    return train_command_run(&t, args);
}
