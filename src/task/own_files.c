#include "task/own_files.h"

#include "core/log.h"
#include "model/model_dir.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char PRETRAINING[] = "pretrain";

enum kinship { UNREADABLE, OWN, OTHER };

/* Checkpoints of earlier versions do not have the command of fine-tuning: the class of the model shows it. */
static const char *command_by_class(const char *checkpoint)
{
    static const char *const commands[][2] = {{"ForQuestionAnswering", "squad"},
                                              {"ForSequenceClassification", "classify"},
                                              {"ForTokenClassification", "tag"}};
    char path[CHECKPOINT_PATH_BYTES];
    const char *found = PRETRAINING;
    json_t *config;
    if (failed(checkpoint_path(path, "%s/" CHECKPOINT_CONFIG, checkpoint)) ||
        failed(json_read_object(&config, path))) {
        return found;
    }
    const char *class = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    for (size_t i = 0; class != NULL && i < sizeof commands / sizeof commands[0]; i++) {
        found = strstr(class, commands[i][0]) != NULL ? commands[i][1] : found;
    }
    json_decref(config);
    return found;
}

static enum kinship kinship_of(const char *checkpoint, const char *command)
{
    char path[CHECKPOINT_PATH_BYTES];
    json_t *state;
    if (failed(checkpoint_path(path, "%s/" CHECKPOINT_STATE, checkpoint)) ||
        failed(json_read_object(&state, path))) {
        return UNREADABLE;
    }
    const char *of = json_string_value(json_object_get(state, "command"));
    of = of != NULL ? of : command_by_class(checkpoint);
    bool own = strcmp(of, command == NULL ? PRETRAINING : command) == 0;
    json_decref(state);
    return own ? OWN : OTHER;
}

/* Kinship of the newest checkpoint that says its kind; *n: number of checkpoints. */
static struct status look_at(enum kinship *found, int *n, const char *directory, const char *command)
{
    struct checkpoint_steps list;
    char path[CHECKPOINT_PATH_BYTES];
    *found = UNREADABLE;
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    for (int i = 0; i < list.n && !failed(s) && *found == UNREADABLE; i++) {
        s = checkpoint_path(path, "%s/ckpt_%" PRId64, directory, list.steps[i]);
        *found = failed(s) ? UNREADABLE : kinship_of(path, command);
    }
    *n = list.n;
    free(list.steps);
    return s;
}

struct status own_files_checkpoints(char path[CHECKPOINT_PATH_BYTES], const char *output_dir,
                                    const char *command)
{
    enum kinship in_it, below;
    int n, n_below;
    TRY(checkpoint_path(path, "%s/%s", output_dir, command == NULL ? PRETRAINING : command));
    TRY(look_at(&below, &n_below, path, command));
    TRY(look_at(&in_it, &n, output_dir, command));
    return n_below > 0 || in_it == OTHER ? status_ok() : checkpoint_path(path, "%s", output_dir);
}

bool own_files_has_checkpoint(const char *directory, const char *command, const char *path)
{
    struct checkpoint_steps list = {0};
    char own[CHECKPOINT_PATH_BYTES];
    bool has = false;
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    for (int i = 0; i < list.n && !failed(s) && !has; i++) {
        s = checkpoint_path(own, "%s/ckpt_%" PRId64, directory, list.steps[i]);
        has = !failed(s) && file_is_same(own, path) && kinship_of(own, command) == OWN;
    }
    free(list.steps);
    return has;
}

struct status own_files_check_model(const char *path, const char *class, const char *flag)
{
    char config[CHECKPOINT_PATH_BYTES];
    json_t *root;
    TRY(model_dir_check_place(path, (struct model_dir_form){.kind = MODEL_DIR_HUGGING_FACE}));
    TRY(checkpoint_path(config, "%s/" CHECKPOINT_CONFIG, path));
    if (!file_exists(config)) {
        return status_ok();
    }
    TRY(json_read_object(&root, config));
    const char *of = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    struct status s =
        of != NULL && strcmp(of, class) == 0
            ? status_ok()
            : status_error(
                  STATUS_USAGE,
                  "%.300s holds a %.60s, which a %s does not replace: move it away, or give another %s", path,
                  of == NULL ? "model of another class" : of, class, flag);
    json_decref(root);
    return s;
}

struct status own_files_remove(const char *path)
{
    if (!file_exists(path)) {
        return status_ok();
    }
    log_info("removing %s", path);
    return file_is_directory(path) ? temporary_remove_directory(path) : file_remove_tree(path);
}

struct status own_files_remove_checkpoints(const char *directory, const char *command)
{
    struct checkpoint_steps list;
    char path[CHECKPOINT_PATH_BYTES];
    struct status s = checkpoint_dir_list(&list, directory, "ckpt_");
    for (int i = 0; i < list.n && !failed(s); i++) {
        s = checkpoint_path(path, "%s/ckpt_%" PRId64, directory, list.steps[i]);
        if (!failed(s) && kinship_of(path, command) == OWN) {
            s = own_files_remove(path);
        } else if (!failed(s)) {
            log_warning("%s is kept: it does not say that kiln %s saved it", path, command);
        }
    }
    free(list.steps);
    return s;
}
