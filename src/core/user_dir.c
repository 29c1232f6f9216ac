#include "core/user_dir.h"

#include <stdio.h>
#include <stdlib.h>

void user_dir_cache(char *path, size_t n, const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (cache != NULL && cache[0] == '/') {
        length = snprintf(path, n, "%s/kiln/%s", cache, name);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, n, "%s/.cache/kiln/%s", home, name);
    }
    if (length <= 0 || (size_t)length >= n) {
        path[0] = '\0';
    }
}
