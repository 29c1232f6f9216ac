#include "task/prepare_outputs.h"

#include "corpus/input_files.h"
#include "text/tokenizer_files.h"

#include <errno.h>
#include <string.h>

/* An output: its name in the output directory, and its place in .prepare. */
struct unit {
    char name[FILE_PATH_BYTES], from[FILE_PATH_BYTES];
};

typedef struct status unit_visit(const struct prepare_config *c, const struct unit *u, void *context);

static const char *const store_files[] = {"train.bin",   "train.idx",   "train.json",
                                          "heldout.bin", "heldout.idx", "heldout.json"};
static const char *const set_files[] = {"training_metadata.json", "training", "test_metadata.json", "test",
                                        TOKENIZER_CONFIG_NAME};

static struct status visit_one(const struct prepare_config *c, const char *directory, const char *name,
                               unit_visit *visit, void *context)
{
    struct unit u;
    int n = snprintf(u.from, sizeof u.from, "%s/" PREPARE_WORK_NAME "/%s%s", c->common.output_dir, directory,
                     name);
    int m = snprintf(u.name, sizeof u.name, "%s/%s", c->common.output_dir, name);
    return n >= (int)sizeof u.from || m >= (int)sizeof u.name
               ? status_error(STATUS_USAGE, "the path %.60s... is too long", c->common.output_dir)
               : visit(c, &u, context);
}

static struct status visit_names(const struct prepare_config *c, const char *directory,
                                 const char *const *names, size_t n, unit_visit *visit, void *context)
{
    for (size_t i = 0; i < n; i++) {
        TRY(visit_one(c, directory, names[i], visit, context));
    }
    return status_ok();
}

/* Calls visit for each output that this run may make, until one fails. */
static struct status visit_units(const struct prepare_config *c, unit_visit *visit, void *context)
{
    if (c->wants_store) {
        TRY(visit_names(c, "", store_files, sizeof store_files / sizeof store_files[0], visit, context));
    }
    if (c->pass.writes_text) {
        TRY(visit_one(c, "", STORE_PASS_TEXT_NAME, visit, context));
    }
    for (int i = 0; i < c->n_sets; i++) {
        TRY(c->sets[i].name[0] != '\0'
                ? visit_one(c, "sets/", c->sets[i].name, visit, context)
                : visit_names(c, "sets/", set_files, sizeof set_files / sizeof set_files[0], visit, context));
    }
    return status_ok();
}

struct status prepare_outputs_set_path(char path[FILE_PATH_BYTES], const struct prepare_config *c,
                                       const struct prepare_set *set)
{
    return file_make_path(path, "%s/" PREPARE_WORK_NAME "/sets%s%s", c->common.output_dir,
                          set->name[0] == '\0' ? "" : "/", set->name);
}

/* Whether the vocabulary goes to the output directory itself. */
static bool has_vocabulary(const struct prepare_config *c)
{
    return c->wants_store || (c->n_sets > 0 && c->sets[0].name[0] == '\0');
}

/* ---- what is there ---- */

static struct status exists(const char *directory, const char *name)
{
    return status_error(STATUS_USAGE, "%s already has %s; --overwrite replaces it", directory, name);
}

static struct status refuse(const struct prepare_config *c, const struct unit *u, void *context)
{
    (void)context;
    return file_exists(u->name) && strcmp(strrchr(u->name, '/') + 1, TOKENIZER_CONFIG_NAME) != 0
               ? exists(c->common.output_dir, u->name + strlen(c->common.output_dir) + 1)
               : status_ok();
}

struct status prepare_outputs_check(const struct prepare_config *c)
{
    enum tokenizer_copy copy;
    const char *name = NULL;
    if (c->overwrite) {
        return status_ok();
    }
    TRY(visit_units(c, refuse, NULL));
    if (has_vocabulary(c)) {
        TRY(tokenizer_files_compare(&copy, &name, c->pass.tokenizer, c->common.output_dir));
    }
    return name == NULL ? status_ok() : exists(c->common.output_dir, name);
}

static struct status guard(const struct prepare_config *c, const struct unit *u, void *context)
{
    (void)c;
    return input_files_check_output(context, "--output_dir", u->name);
}

struct status prepare_outputs_guard(const struct prepare_config *c, const struct input_files *f)
{
    TRY(input_files_check_output_directory(f, (const char *const *)c->inputs, c->n_inputs, "--output_dir",
                                           c->common.output_dir));
    TRY(visit_units(c, guard, (void *)f));
    for (int i = 0; has_vocabulary(c) && i < c->pass.tokenizer->n_files; i++) {
        char path[2 * FILE_PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", c->common.output_dir, c->pass.tokenizer->files[i].name);
        TRY(input_files_check_output(f, "--output_dir", path));
    }
    return status_ok();
}

/* ---- moving ---- */

static struct status remove_if_there(const char *path)
{
    return file_exists(path) ? file_remove_tree(path) : status_ok();
}

static struct status clean(const struct prepare_config *c, const struct unit *u, void *context)
{
    (void)c, (void)context;
    temporary_clean(u->name);
    return status_ok();
}

void prepare_outputs_clean(const struct prepare_config *c)
{
    visit_units(c, clean, NULL);
    visit_one(c, "", "prepare", clean, NULL);
}

static struct status remove_old(const struct prepare_config *c, const struct unit *u, void *context)
{
    (void)c, (void)context;
    return file_exists(u->from) ? status_ok() : remove_if_there(u->name);
}

struct status prepare_outputs_remove_old(const struct prepare_config *c)
{
    return visit_units(c, remove_old, NULL);
}

/* Removes the description of a store that is to be replaced, without which the rest of it is unfinished. */
static struct status remove_description(const struct prepare_config *c, const struct unit *u, void *context)
{
    const char *end = strrchr(u->name, '.');
    (void)c, (void)context;
    return end != NULL && strcmp(end, ".json") == 0 && file_exists(u->from) ? remove_if_there(u->name)
                                                                            : status_ok();
}

static struct status move(const struct prepare_config *c, const struct unit *u, void *context)
{
    char parent[FILE_PATH_BYTES];
    (void)c, (void)context;
    if (!file_exists(u->from)) {
        return status_ok(); /* no such output, or it was moved before the run was interrupted */
    }
    file_parent(parent, u->name);
    TRY(file_make_directories(parent));
    char target[FILE_PATH_BYTES];
    memcpy(target, u->name, sizeof target);
    TRY(file_is_directory(u->from) ? remove_if_there(target) : file_follow_links(target));
    FAIL_IF(rename(u->from, target) != 0, STATUS_IO, "cannot rename %s to %s: %s", u->from, target,
            strerror(errno));
    return file_sync_directory(parent);
}

struct status prepare_outputs_move(const struct prepare_config *c)
{
    enum tokenizer_copy copy;
    const char *name = NULL;
    if (has_vocabulary(c)) {
        TRY(tokenizer_files_compare(&copy, &name, c->pass.tokenizer, c->common.output_dir));
        TRY(copy == TOKENIZER_COPY_SAME ? status_ok()
                                        : tokenizer_files_write(c->pass.tokenizer, c->common.output_dir));
    }
    TRY(visit_units(c, remove_description, NULL));
    return visit_units(c, move, NULL);
}
