#define _GNU_SOURCE /* realpath */
#include "cmd/train_state.h"

#include "core/hash.h"
#include "core/log.h"
#include "io/json_file.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The names, sizes and times of the files say whether it is the same text. */
static json_t *describe_text(const struct input_files *files)
{
    uint64_t hash = 0;
    char hex[24];
    for (int64_t i = 0; i < files->n; i++) {
        const struct input_file *f = &files->files[i];
        char *path = realpath(f->path, NULL); /* so that it is the same from any directory */
        const char *name = path != NULL ? path : f->path;
        uint64_t parts[] = {hash, hash_fnv1a(name, strlen(name)), f->n_bytes, (uint64_t)f->changed_ns};
        hash = hash_fnv1a(parts, sizeof parts);
        free(path);
    }
    snprintf(hex, sizeof hex, "%016" PRIx64, hash);
    return json_pack("{s:I, s:I, s:s}", "files", (json_int_t)files->n, "bytes",
                     (json_int_t)files->total_bytes, "hash", hex);
}

/* The first name of a directory that is neither `allowed` nor begins with a point; "": there is none. */
static void find_other(char name[256], const char *directory, const char *allowed)
{
    DIR *dir = opendir(directory);
    name[0] = '\0';
    for (const struct dirent *e; dir != NULL && name[0] == '\0' && (e = readdir(dir)) != NULL;) {
        bool is_other = e->d_name[0] != '.' && strcmp(e->d_name, allowed) != 0;
        snprintf(name, 256, "%s", is_other ? e->d_name : "");
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* `kiln train` makes an empty directory first, and then the state. */
static struct status check_directory(const struct train_state *s)
{
    char name[256];
    if (file_exists(s->path)) {
        return status_ok();
    }
    find_other(name, s->output_dir, "data");
    if (name[0] == '\0') {
        find_other(name, s->data, "");
    }
    return name[0] == '\0' ? status_ok()
                           : status_error(STATUS_USAGE,
                                          "--output_dir %s has %s, which kiln train did not make: give a "
                                          "directory that is new or empty",
                                          s->output_dir, name);
}

static struct status begin(struct train_state *s, json_t *text, json_t *flags)
{
    json_decref(s->root);
    s->root = json_pack("{s:O, s:O, s:{}}", "text", text, "flags", flags, "done");
    return train_state_write(s);
}

static struct status begin_anew(struct train_state *s, json_t *text, json_t *flags)
{
    log_info("nothing of %s was trained yet: it begins anew, with what is given now", s->output_dir);
    if (!s->is_dry) {
        TRY(file_exists(s->data) ? file_remove_tree(s->data) : status_ok());
        TRY(file_make_directories(s->data));
    }
    return begin(s, text, flags);
}

static struct status read_or_begin(struct train_state *s, json_t *text, json_t *flags)
{
    if (!file_exists(s->path)) {
        return begin(s, text, flags);
    }
    TRY(json_read_object(&s->root, s->path));
    json_t *old_text = json_object_get(s->root, "text"), *old_flags = json_object_get(s->root, "flags");
    FAIL_IF(old_text == NULL || old_flags == NULL || json_object_get(s->root, "done") == NULL, STATUS_USAGE,
            "%s is not of kiln train: give a directory that is new or empty", s->path);
    bool same_text = json_equal(old_text, text), same_flags = json_equal(old_flags, flags);
    if (same_text && same_flags) {
        return status_ok();
    }
    FAIL_IF(json_object_get(s->root, "seconds") != NULL, STATUS_USAGE,
            "--output_dir %s has a model of %s: give another --output_dir, or the command that began it",
            s->output_dir, same_text ? "other flags" : "another text, or of files that have changed");
    return begin_anew(s, text, flags);
}

static struct status lock_and_open(struct train_state *s, json_t *text, json_t *flags)
{
    TRY(file_make_path(s->data, "%s/data", s->output_dir));
    TRY(file_make_path(s->path, "%s/train.json", s->output_dir));
    TRY(check_directory(s));
    if (!s->is_dry) {
        TRY(file_make_directories(s->data));
        TRY(dir_lock_acquire_beside(&s->lock, s->path));
    }
    return read_or_begin(s, text, flags);
}

struct status train_state_open(struct train_state *s, const char *output_dir, const struct input_files *texts,
                               json_t *flags, bool is_dry)
{
    json_t *text = describe_text(texts);
    *s = (struct train_state){.output_dir = output_dir, .lock.fd = -1, .is_dry = is_dry};
    struct status status = lock_and_open(s, text, flags);
    json_decref(text);
    json_decref(flags);
    return status;
}

void train_state_close(struct train_state *s)
{
    json_decref(s->root);
    dir_lock_release(&s->lock);
}

bool train_state_is_done(const struct train_state *s, const char *step)
{
    return json_object_get(json_object_get(s->root, "done"), step) != NULL;
}

struct status train_state_set_done(const struct train_state *s, const char *step)
{
    json_object_set_new(json_object_get(s->root, "done"), step, json_true());
    return train_state_write(s);
}

struct status train_state_write(const struct train_state *s)
{
    return s->is_dry ? status_ok() : json_file_write(s->path, json_incref(s->root));
}
