#include "task/finetune_job.h"

#include "io/file.h"
#include "task/own_files.h"

static struct status refuse_file(const struct finetune_options *o, const char *name, const char *what)
{
    char path[MODEL_DIR_PATH_BYTES];
    TRY(finetune_output_path(path, o, name));
    FAIL_IF(file_exists(path), STATUS_USAGE,
            "%.300s already has %s; add --overwrite_output_dir to replace what is there, or give another "
            "--output_dir",
            o->run.common.output_dir, what);
    return status_ok();
}

/* Class of the task's model, in the family that has such a head. */
static const char *class_of(const struct finetune_task *task)
{
    for (size_t i = 0; model_families[i] != NULL; i++) {
        bool has = true;
        for (unsigned p = 0; p < NAMES_N_PARTS; p++) {
            has = has && ((task->may_be_new >> p & 1) == 0 || model_families[i]->parts[p] != NULL);
        }
        if (has) {
            return model_families[i]->class_of(task->task);
        }
    }
    return task->command;
}

static struct status check_model(const struct finetune_options *o, const struct finetune_task *task)
{
    char path[MODEL_DIR_PATH_BYTES];
    TRY(finetune_output_path(path, o, "model"));
    return own_files_check_model(path, class_of(task), "--output_dir");
}

struct status finetune_finished_check(const struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    const struct finetune_task *task = j->task;
    if (!o->do_train || j->run.loop.ranks.world.rank > 0) {
        return status_ok();
    }
    TRY(o->run.skip_checkpoint && !o->overwrite_output_dir ? status_ok() : check_model(o, task));
    if (o->overwrite_output_dir || o->run.resume_from_checkpoint) {
        return status_ok();
    }
    if (!o->run.skip_checkpoint) {
        TRY(refuse_file(o, "model/config.json", "a fine-tuned model"));
    }
    return o->do_predict ? refuse_file(o, task->predictions, "predictions") : status_ok();
}

static struct status refuse_start(const struct finetune_options *o, const char *from, const char *model,
                                  const char *checkpoints)
{
    FAIL_IF(
        file_is_same(from, model) || own_files_has_checkpoint(checkpoints, o->run.names->command, from),
        STATUS_USAGE,
        "--overwrite_output_dir would remove %.300s, from which this run starts: give another --output_dir",
        from);
    return status_ok();
}

struct status finetune_finished_remove(void *self)
{
    const struct finetune_job *j = self;
    const struct finetune_options *o = j->options;
    const struct finetune_task *task = j->task;
    const char *from = j->open.model.place.directory;
    char model[MODEL_DIR_PATH_BYTES], file[MODEL_DIR_PATH_BYTES], checkpoints[CHECKPOINT_PATH_BYTES];
    if (!o->do_train || !o->overwrite_output_dir || o->run.resume_from_checkpoint) {
        return status_ok();
    }
    TRY(finetune_output_path(model, o, "model"));
    TRY(finetune_output_path(file, o, task->predictions));
    TRY(own_files_checkpoints(checkpoints, o->run.common.output_dir, o->run.names->command));
    TRY(check_model(o, task)); /* another run may have left a model since the first check */
    TRY(refuse_start(o, from, model, checkpoints));
    TRY(own_files_remove(model));
    TRY(own_files_remove(file));
    return own_files_remove_checkpoints(checkpoints, o->run.names->command);
}
