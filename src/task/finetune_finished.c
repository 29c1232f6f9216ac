#include "task/finetune_finished.h"

#include "io/file.h"
#include "task/finetune.h"
#include "task/own_files.h"

static struct status refuse_file(const struct finetune_options *o, const char *name, const char *what)
{
    char path[MODEL_DIR_PATH_BYTES];
    TRY(finetune_output_path(path, o, name));
    return !file_exists(path) ? status_ok()
                              : status_error(STATUS_USAGE,
                                             "%.300s already has %s; add --overwrite_output_dir to replace "
                                             "what is there, or give another --output_dir",
                                             o->output_dir, what);
}

struct status finetune_finished_check(const struct finetune_options *o, const char *predictions)
{
    if (!o->do_train || o->overwrite_output_dir || o->resume_from_checkpoint) {
        return status_ok();
    }
    if (!o->skip_checkpoint) {
        TRY(refuse_file(o, "model/config.json", "a fine-tuned model"));
    }
    return o->do_predict ? refuse_file(o, predictions, "predictions") : status_ok();
}

static struct status refuse_start(const struct finetune_options *o, const char *from, const char *model,
                                  const char *checkpoints)
{
    char parent[FILE_PATH_BYTES];
    file_parent(parent, from);
    bool goes = file_is_same(from, model) ||
                (file_is_same(parent, checkpoints) && own_files_is_checkpoint(from, o->command));
    return goes ? status_error(STATUS_USAGE,
                               "--overwrite_output_dir would remove %.300s, from which this run starts: give "
                               "another --output_dir",
                               from)
                : status_ok();
}

struct status finetune_finished_remove(const struct finetune_options *o, const char *predictions,
                                       const char *from, const char *class)
{
    char model[MODEL_DIR_PATH_BYTES], file[MODEL_DIR_PATH_BYTES], checkpoints[CHECKPOINT_PATH_BYTES];
    if (!o->do_train || !o->overwrite_output_dir || o->resume_from_checkpoint) {
        return status_ok();
    }
    TRY(finetune_output_path(model, o, "model"));
    TRY(finetune_output_path(file, o, predictions));
    TRY(own_files_checkpoints(checkpoints, o->output_dir, o->command));
    TRY(own_files_check_model(model, class));
    TRY(refuse_start(o, from, model, checkpoints));
    TRY(own_files_remove(model));
    TRY(own_files_remove(file));
    return own_files_remove_checkpoints(checkpoints, o->command);
}
