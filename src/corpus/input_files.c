#define _GNU_SOURCE /* st_mtim */
#include "corpus/input_files.h"

#include "core/array.h"
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct status add_file(struct input_files *f, const char *path, const struct stat *info)
{
    FAIL_IF(!ARRAY_RESERVE(f->files, f->capacity, f->n + 1), STATUS_MEMORY,
            "out of memory for a list of %lld files", (long long)f->n + 1);
    char *copy = strdup(path);
    FAIL_IF(copy == NULL, STATUS_MEMORY, "out of memory for the path %s", path);
    int64_t changed_ns = (int64_t)info->st_mtim.tv_sec * INT64_C(1000000000) + info->st_mtim.tv_nsec;
    f->files[f->n++] =
        (struct input_file){.path = copy, .n_bytes = (uint64_t)info->st_size, .changed_ns = changed_ns};
    f->total_bytes += (uint64_t)info->st_size;
    return status_ok();
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static struct status add_tree(struct input_files *f, const char *path, int depth);

static struct status add_entry(struct input_files *f, const char *directory, const char *name, int depth)
{
    char path[4096];
    FAIL_IF((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path, STATUS_DATA,
            "a path in %.60s... is longer than %zu bytes", directory, sizeof path - 1);
    struct stat info;
    FAIL_IF(stat(path, &info) != 0, STATUS_DATA, "cannot read %s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) {
        return add_tree(f, path, depth + 1);
    }
    return S_ISREG(info.st_mode) ? add_file(f, path, &info) : status_ok();
}

static struct status add_tree(struct input_files *f, const char *path, int depth)
{
    enum { MAX_DEPTH = 64 }; /* deeper is a loop of symbolic links */
    FAIL_IF(depth > MAX_DEPTH, STATUS_DATA,
            "%.200s... is more than %d directories deep; is it a loop of links?", path, MAX_DEPTH);
    struct dirent **entries;
    int n = scandir(path, &entries, is_visible, by_bytes);
    FAIL_IF(n < 0, STATUS_DATA, "cannot list the directory %s: %s", path, strerror(errno));
    struct status s = status_ok();
    for (int i = 0; i < n; i++) {
        if (!failed(s)) {
            s = add_entry(f, path, entries[i]->d_name, depth);
        }
        free(entries[i]);
    }
    free(entries);
    return s;
}

static struct status add_input(struct input_files *f, const char *path)
{
    struct stat info;
    FAIL_IF(stat(path, &info) != 0, STATUS_DATA, "cannot read the input %s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) {
        int64_t n_before = f->n;
        TRY(add_tree(f, path, 0));
        for (int64_t i = n_before; i < f->n; i++) {
            f->files[i].in_directory = true;
        }
        return f->n > n_before ? status_ok()
                               : status_error(STATUS_DATA, "the directory %s has no files", path);
    }
    FAIL_IF(!S_ISREG(info.st_mode), STATUS_DATA, "the input %s is neither a file nor a directory", path);
    FAIL_IF(info.st_size == 0, STATUS_DATA, "the input %s is empty", path);
    return add_file(f, path, &info);
}

struct status input_files_list(struct input_files *f, const char *const *inputs, int n_inputs)
{
    *f = (struct input_files){0};
    for (int i = 0; i < n_inputs; i++) {
        struct status s = add_input(f, inputs[i]);
        if (failed(s)) {
            input_files_fini(f);
            return s;
        }
    }
    return status_ok();
}

void input_files_fini(struct input_files *f)
{
    for (int64_t i = 0; i < f->n; i++) {
        free(f->files[i].path);
    }
    free(f->files);
    *f = (struct input_files){0};
}

/* ---- outputs ---- */

struct status input_files_check_output(const struct input_files *f, const char *flag, const char *path)
{
    struct stat output, input;
    if (stat(path, &output) != 0) {
        return status_ok();
    }
    for (int64_t i = 0; i < f->n; i++) {
        FAIL_IF(stat(f->files[i].path, &input) == 0 && input.st_dev == output.st_dev &&
                    input.st_ino == output.st_ino,
                STATUS_USAGE, "%s would write %s over the input %s: choose another place", flag, path,
                f->files[i].path);
    }
    return status_ok();
}

static struct status inside(const char *flag, const char *path, const char *input)
{
    return status_error(STATUS_USAGE,
                        "%s %s is inside the input %s, so that the next run would read what this one writes: "
                        "choose a place outside it",
                        flag, path, input);
}

/* Whether the walk from `input` would enter the directory `real`, a path without links.  The walk skips names
 * that begin with a dot. */
static bool is_walked(const char *input, const char *real)
{
    char above[FILE_PATH_BYTES];
    snprintf(above, sizeof above, "%s", real);
    for (;;) {
        if (file_is_same(above, input)) {
            return true;
        }
        char *slash = strrchr(above, '/');
        if (slash == NULL || slash[1] == '.' || slash[1] == '\0') {
            return false;
        }
        slash[slash == above ? 1 : 0] = '\0';
    }
}

/* A file of `input` that is in the directory `path`, reached through a link; NULL if there is none. */
static const char *find_in_directory(const struct input_files *f, const char *input, const char *path)
{
    size_t n = strlen(input);
    for (int64_t i = 0; i < f->n; i++) {
        char parent[FILE_PATH_BYTES];
        const char *file = f->files[i].path;
        if (strncmp(file, input, n) == 0 && file[n] == '/') {
            file_parent(parent, file);
            if (file_is_same(parent, path)) {
                return file;
            }
        }
    }
    return NULL;
}

struct status input_files_check_output_directory(const struct input_files *f, const char *const *inputs,
                                                 int n_inputs, const char *flag, const char *path)
{
    char existing[FILE_PATH_BYTES];
    TRY(file_existing_part(existing, path));
    char *real = realpath(existing, NULL);
    struct status s = status_ok();
    for (int i = 0; i < n_inputs && real != NULL && !failed(s); i++) {
        if (!file_is_directory(inputs[i])) {
            continue;
        }
        const char *file = find_in_directory(f, inputs[i], path);
        if (file != NULL || is_walked(inputs[i], real)) {
            s = inside(flag, path, file != NULL ? file : inputs[i]);
        }
    }
    free(real);
    return s;
}
