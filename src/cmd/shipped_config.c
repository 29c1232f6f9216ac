#include "cmd/shipped_config.h"

#include "core/buf.h"
#include "core/nearest.h"
#include "core/shared_library.h"
#include "io/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char family[] = "bert_", suffix[] = ".json";

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

/* The name that people use for a file: without the suffix and, of most, the family. */
static char *name_of(char *file)
{
    file[strlen(file) - (sizeof suffix - 1)] = '\0';
    return strncmp(file, family, sizeof family - 1) == 0 ? file + sizeof family - 1 : file;
}

static struct status unknown(const char *name, const char *folder)
{
    struct dirent **files = NULL;
    struct nearest best = {0};
    struct buf names = {0};
    int n = scandir(folder, &files, is_config, alphasort);
    for (int i = 0; i < n; i++) {
        char *known = name_of(files[i]->d_name);
        nearest_try(&best, known, name, strlen(name));
        buf_printf(&names, "%s%s", i == 0 ? "" : ", ", known);
    }
    struct status s =
        status_error(STATUS_USAGE,
                     "--config_file %s is no file, and no configuration of this name comes with "
                     "kiln%s there are %s",
                     name, best.word == NULL ? ":" : nearest_question(&best, "").text, buf_text(&names));
    for (int i = 0; i < n; i++) {
        free(files[i]);
    }
    free(files);
    buf_fini(&names);
    return s;
}

struct status shipped_config_find(char path[SHIPPED_CONFIG_BYTES], const char **config_file)
{
    const char *name = *config_file;
    char folder[SHIPPED_CONFIG_BYTES];
    if (strchr(name, '/') != NULL || ends_in_json(name) || name[0] == '<' || file_exists(name)) {
        return status_ok();
    }
    if (!find_folder(folder)) {
        return status_error(STATUS_USAGE,
                            "--config_file %s is no file, and the configurations that come with kiln are not "
                            "there: %s is no directory",
                            name, folder);
    }
    for (int i = 0; i < 2; i++) {
        int n = snprintf(path, SHIPPED_CONFIG_BYTES, "%s/%s%s%s", folder, i == 0 ? "" : family, name, suffix);
        if (n < SHIPPED_CONFIG_BYTES && file_exists(path)) {
            *config_file = path;
            return status_ok();
        }
    }
    return unknown(name, folder);
}
