#include "dist/visible_devices.h"

#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char VARIABLE[] = "CUDA_VISIBLE_DEVICES";

static int count_words(const char *list)
{
    int n = 0;
    for (const char *p = list; *p != '\0'; p += *p == ',') {
        n += *p != ',';
        p += strcspn(p, ",");
    }
    return n;
}

/* CUDA shows those before the first that it does not know (CUDA C Programming Guide, environment variables),
 * so a list of fewer words than it seems is the user's to mend. */
bool visible_devices_choose(char *chosen, size_t n, const char *list, int n_chips, int local_rank)
{
    if (list == NULL) {
        snprintf(chosen, n, "%d", n_chips > 0 ? local_rank % n_chips : 0);
        return n_chips > 0;
    }
    int words = count_words(list), k = words > 0 ? local_rank % words : 0;
    const char *p = list;
    while (k > 0 || *p == ',') {
        k -= *p != ',';
        p += strcspn(p, ",");
        p += *p == ',';
    }
    int length = (int)strcspn(p, ",");
    return words > 0 && snprintf(chosen, n, "%.*s", length, p) < (int)n;
}

/* The driver makes a file for each GPU that this process, or its container, may use. */
static int count_chips(void)
{
    enum { MOST = 64 };
    char path[32];
    int n = 0;
    for (int i = 0; i < MOST; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        n += access(path, F_OK) == 0;
    }
    return n;
}

void visible_devices_take(int local_rank)
{
    char chosen[128];
    const char *list = getenv(VARIABLE);
    if (!visible_devices_choose(chosen, sizeof chosen, list, count_chips(), local_rank) ||
        (list != NULL && strcmp(list, chosen) == 0)) {
        return;
    }
    if (setenv(VARIABLE, chosen, 1) != 0) {
        log_warning("%s=%s cannot be set: all ranks of this node use the first GPU", VARIABLE, chosen);
    }
}
