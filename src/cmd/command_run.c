#include "cmd/command_run.h"

#include "cmd/model_store.h"
#include "cmd/rank_run.h"
#include "core/buf.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/nearest.h"
#include "core/shared_library.h"
#include "io/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES = 4096 };

struct parsed {
    _Alignas(16) char args[OPTION_ARGS_BYTES];
    char config[CONFIG_BYTES]; /* a path that stands for a name */
    struct words models;       /* paths that stand for names */
    int n_positional;
    enum option_help help;
};

static struct status parse(struct parsed *p, const struct command *c, int argc, const char **argv)
{
    CHECK(c->args_bytes <= sizeof p->args, "the arguments of %s need %zu bytes", c->name, c->args_bytes);
    return option_parse(c, argc, argv, p->args, &p->n_positional, &p->help);
}

/* ---- the model configurations that kiln comes with ----
 *
 * "mini" is the file that is called mini after its first "_".  They are in ../share/kiln/configs of an
 * installed program, and in ../configs of one in its build folder. */

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
static bool find_folder(char folder[CONFIG_BYTES])
{
    static const char *const places[] = {"/../share/kiln/configs", "/../configs"};
    char own[1024];
    shared_library_own_directory(own, sizeof own);
    for (int i = 2; i-- > 0;) {
        snprintf(folder, CONFIG_BYTES, "%s%s", own, places[i]);
        if (file_is_directory(folder)) {
            return true;
        }
    }
    return false;
}

/* Short name of a configuration, which is enough to choose it: the part after the first '_', if there is
 * one. */
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

/* If *config_file is a name without '/' and .json, and no file is called so, writes the path of the
 * configuration of this name to `path` and points *config_file at it.  STATUS_USAGE names those that exist,
 * if one has a name like it. */
static struct status find_shipped(char path[CONFIG_BYTES], const char **config_file)
{
    const char *name = *config_file;
    char folder[CONFIG_BYTES];
    struct dirent **files = NULL;
    if (strchr(name, '/') != NULL || ends_in_json(name) || name[0] == '<' ||
        (file_exists(name) && !file_is_directory(name))) {
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
        snprintf(path, CONFIG_BYTES, "%s/%s%s", folder, files[found]->d_name, suffix);
        *config_file = path;
    }
    for (int i = 0; i < n; i++) {
        free(files[i]);
    }
    free(files);
    return s;
}

/* ---- the words of a command ---- */

/* --config_file of any command takes the name of a configuration that kiln comes with. */
static struct status find_config(struct parsed *p, const struct command *c)
{
    for (struct option_walk w = {0}; option_next(&w, c);) {
        const struct option *o = &w.row;
        const char **file = (const char **)(void *)(p->args + o->offset);
        if (strcmp(o->name, "config_file") == 0 && o->kind == OPTION_STRING && *file != NULL) {
            return find_shipped(p->config, file);
        }
    }
    return status_ok();
}

struct status command_run(const struct command *c, int argc, const char **argv)
{
    struct parsed p;
    p.models = (struct words){0};
    if (c->of_ranks &&
        launcher_rank() > 0) { /* quiet until the others are found: the first rank logs for all */
        log_set_level(LOG_QUIET);
    }
    struct status s = parse(&p, c, argc, argv);
    if (!failed(s) && p.help == OPTION_NO_HELP) {
        s = find_config(&p, c);
    }
    if (!failed(s) && p.help == OPTION_NO_HELP) {
        s = model_store_find(c, p.args, &p.models);
    }
    if (failed(s)) {
        return c->of_ranks ? rank_run_refuse(s) : s;
    }
    if (p.help != OPTION_NO_HELP) {
        option_print_help(c, p.help);
        return status_ok();
    }
    s = c->run(p.args, p.n_positional, argv);
    words_fini(&p.models);
    return s;
}

struct status command_check(const struct command *c, int argc, const char **argv)
{
    struct parsed p;
    return parse(&p, c, argc, argv);
}
