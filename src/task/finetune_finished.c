#include "task/finetune_finished.h"

#include "io/file.h"
#include "model/checkpoint.h"
#include "task/finetune.h"

#include <stdint.h>

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

struct status finetune_finished_remove(const struct finetune_options *o, const char *predictions)
{
    const char *const names[] = {"model", predictions};
    char path[MODEL_DIR_PATH_BYTES];
    if (!o->do_train || !o->overwrite_output_dir || o->resume_from_checkpoint) {
        return status_ok();
    }
    for (int i = 0; i < 2; i++) {
        TRY(finetune_output_path(path, o, names[i]));
        TRY(file_exists(path) ? file_remove_tree(path) : status_ok());
    }
    return checkpoint_dir_remove_between(o->output_dir, -1, INT64_MAX);
}
