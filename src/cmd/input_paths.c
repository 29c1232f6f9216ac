#include "cmd/input_paths.h"

#include <stdlib.h>
#include <string.h>

struct status input_paths_init(struct input_paths *p, const char *first, const char *list, int n_more,
                               const char *const *more)
{
    size_t n_list = list == NULL ? 0 : strlen(list) + 1;
    *p = (struct input_paths){.paths = malloc(((size_t)n_more + n_list + 1) * sizeof *p->paths),
                              .copy = strdup(list == NULL ? "" : list)};
    if (p->paths == NULL || p->copy == NULL) {
        input_paths_fini(p);
        return status_error(STATUS_MEMORY, "out of memory for a list of inputs");
    }
    if (first != NULL) {
        p->paths[p->n++] = first;
    }
    for (int i = 0; i < n_more; i++) {
        p->paths[p->n++] = more[i];
    }
    char *state = NULL;
    for (char *path = strtok_r(p->copy, ",", &state); path != NULL; path = strtok_r(NULL, ",", &state)) {
        p->paths[p->n++] = path;
    }
    return status_ok();
}

void input_paths_fini(struct input_paths *p)
{
    free(p->paths);
    free(p->copy);
    *p = (struct input_paths){0};
}
