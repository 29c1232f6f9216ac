/* input_paths: the inputs of a command that takes `--input PATH...`: the flag's path, those that follow, and
 * those of another flag, which is a list with commas. */
#ifndef KILN_CMD_INPUT_PATHS_H
#define KILN_CMD_INPUT_PATHS_H

#include "core/status.h"

struct input_paths {
    const char **paths; /* [n], those of the list in `copy`, the others borrowed */
    int n;
    char *copy;
};

/* `first` and `list` may be NULL.  STATUS_MEMORY. */
struct status input_paths_init(struct input_paths *p, const char *first, const char *list, int n_more,
                               const char *const *more);
void input_paths_fini(struct input_paths *p);

#endif
