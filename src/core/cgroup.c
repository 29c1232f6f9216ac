#include "core/cgroup.h"

#include "core/kernel_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096, ROOT_BYTES = 64 };

/* Whether a list with commas between has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* The process's own group below the root of a controller's tree; the root where the file of groups does not
 * say. */
static void own_group(char path[PATH_BYTES + ROOT_BYTES], const char *root, const char *controller)
{
    char line[PATH_BYTES];
    FILE *f = fopen("/proc/self/cgroup", "r");
    snprintf(path, PATH_BYTES + ROOT_BYTES, "%s", root);
    while (f != NULL && fgets(line, sizeof line, f) != NULL) { /* NUMBER:CONTROLLERS:PATH */
        char *controllers = strchr(line, ':'),
             *place = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        line[strcspn(line, "\n")] = '\0';
        if (place != NULL) {
            *place = '\0';
            if (has_word(controllers + 1, controller)) {
                snprintf(path, PATH_BYTES + ROOT_BYTES, "%s%s", root, place + 1);
            }
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

void cgroup_visit(const char *controller, cgroup_visitor *visitor, void *context)
{
    char root[ROOT_BYTES], path[PATH_BYTES + ROOT_BYTES];
    snprintf(root, sizeof root, "/sys/fs/cgroup%s%s", *controller == '\0' ? "" : "/", controller);
    own_group(path, root, controller);
    while (strlen(path) >= strlen(root)) {
        visitor(context, path);
        *strrchr(path, '/') = '\0';
    }
}

double cgroup_processors_of(const char *directory)
{
    char path[PATH_BYTES + 64], line[64] = "";
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", directory); /* "QUOTA PERIOD" or "max PERIOD" */
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        bool read = fgets(line, sizeof line, f) != NULL;
        fclose(f);
        return read && sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : 0;
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    period = (double)kernel_file_read(path, "");
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory); /* -1: no limit, which reads as none */
    quota = (double)kernel_file_read(path, "");
    return period > 0 && quota < 1e15 ? quota / period : 0;
}

static void take_least(void *context, const char *directory)
{
    double *least = context, here = cgroup_processors_of(directory);
    *least = here > 0 && (*least <= 0 || here < *least) ? here : *least;
}

double cgroup_processors(void)
{
    double least = 0;
    cgroup_visit("cpu", take_least, &least);
    cgroup_visit("", take_least, &least);
    return least;
}
