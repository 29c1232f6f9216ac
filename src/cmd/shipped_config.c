#include "cmd/shipped_config.h"

#include "core/buf.h"
#include "core/nearest.h"
#include "core/shared_library.h"
#include "io/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".json";

static bool ends_in_json(const char *name)
{
    size_t n = strlen(name), n_suffix = sizeof suffix - 1;
    return n > n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

static int is_config(const struct dirent *entry)
{
    return ends_in_json(entry->d_name);
}

/* The folder of the configurations; false and where it is looked for first if there is none. */
static bool find_folder(char folder[SHIPPED_CONFIG_BYTES])
{
    static const char *const places[] = {"/../share/kiln/configs", "/../configs"};
    char program[1024];
    shared_library_program_directory(program, sizeof program);
    for (int i = 2; i-- > 0;) {
        snprintf(folder, SHIPPED_CONFIG_BYTES, "%s%s", program, places[i]);
        if (file_is_directory(folder)) {
            return true;
        }
    }
    return false;
}

/* What is enough to name a configuration: what follows the first '_' of its name, if anything does. */
static const char *short_name(const char *name)
{
    const char *dash = strchr(name, '_');
    return dash == NULL ? name : dash + 1;
}

/* Takes the suffix from the names, and returns the index of the one that is meant; -1: none is. */
static int find_name(struct dirent *const *files, int n, const char *name)
{
    int found = -1;
    for (int i = 0; i < n; i++) {
        char *known = files[i]->d_name;
        known[strlen(known) - (sizeof suffix - 1)] = '\0';
        if (strcmp(known, name) == 0 || (found < 0 && strcmp(short_name(known), name) == 0)) {
            found = i;
        }
    }
    return found;
}

/* A name that is nothing like one of these is a file that is missing: the command says so, once it has looked
 * at what else is wrong. */
static struct status unknown(struct dirent *const *files, int n, const char *name)
{
    struct nearest best = {0};
    struct buf names = {0};
    for (int i = 0; i < n; i++) {
        nearest_try(&best, files[i]->d_name, name, strlen(name));
        nearest_try(&best, short_name(files[i]->d_name), name, strlen(name));
        buf_printf(&names, "%s%s", i == 0 ? "" : ", ", files[i]->d_name);
    }
    struct status s =
        best.word == NULL
            ? status_ok()
            : status_error(STATUS_USAGE,
                           "--config_file %s is not a file, and no configuration of this name comes with "
                           "kiln%s there are %s",
                           name, nearest_question(&best, "").text, buf_text(&names));
    buf_fini(&names);
    return s;
}

struct status shipped_config_find(char path[SHIPPED_CONFIG_BYTES], const char **config_file)
{
    const char *name = *config_file;
    char folder[SHIPPED_CONFIG_BYTES];
    struct dirent **files = NULL;
    if (strchr(name, '/') != NULL || ends_in_json(name) || name[0] == '<' || file_exists(name)) {
        return status_ok();
    }
    int n = find_folder(folder) ? scandir(folder, &files, is_config, alphasort) : -1;
    FAIL_IF(n < 0, STATUS_USAGE,
            "--config_file %s is not a file, and the configurations that come with kiln are missing: %s is "
            "not a directory",
            name, folder);
    int found = find_name(files, n, name);
    struct status s = found < 0 ? unknown(files, n, name) : status_ok();
    if (found >= 0) {
        snprintf(path, SHIPPED_CONFIG_BYTES, "%s/%s%s", folder, files[found]->d_name, suffix);
        *config_file = path;
    }
    for (int i = 0; i < n; i++) {
        free(files[i]);
    }
    free(files);
    return s;
}
