#define _GNU_SOURCE
#include "corpus/input_guard.h"

#include "io/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct status input_guard_check_file(const struct input_files *f, const char *flag, const char *path)
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

struct status input_guard_check_directory(const struct input_files *f, const char *const *inputs,
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
