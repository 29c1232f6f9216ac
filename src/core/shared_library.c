#define _GNU_SOURCE /* dladdr1 */
#include "core/shared_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A path's name, after the directory. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_libkiln(const char *path)
{
    return strncmp(name_of(path), "libkiln.so", sizeof "libkiln.so" - 1) == 0;
}

/* Writes the path of libkiln.so, if this code is part of it, or else of the program; "": unknown.  Tests may
 * be linked with a library that is neither. */
static void own_path(char *path, size_t n)
{
    static const char here; /* a place in this program or library */
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && is_libkiln(map->l_name)) {
        snprintf(path, n, "%s", map->l_name);
    } else {
        ssize_t length = readlink("/proc/self/exe", path, n - 1);
        path[length < 0 ? 0 : length] = '\0';
    }
}

void shared_library_own_directory(char *path, size_t n)
{
    own_path(path, n);
    const char *name = name_of(path);
    path[name > path ? name - path - 1 : 0] = '\0';
}

/* Looks for a file in places from kiln's directory on. */
static bool find_beside(char *path, size_t n, const char *const *places, int n_places, const char *name)
{
    char directory[1024];
    shared_library_own_directory(directory, sizeof directory);
    for (int i = 0; i < n_places; i++) {
        snprintf(path, n, "%s%s/%s", directory, places[i], name);
        if (access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

void shared_library_program(char *path, size_t n)
{
    static const char *const places[] = {"", "/../bin"};
    own_path(path, n);
    if (!is_libkiln(path)) {
        snprintf(path, n, "/proc/self/exe");
    } else if (!find_beside(path, n, places, 2, "kiln")) {
        snprintf(path, n, "kiln");
    }
}

void shared_library_of_kiln(char *path, size_t n, const char *name)
{
    static const char *const places[] = {"", "/..", "/../lib", "/../lib/kiln", "/../kiln"};
    if (!find_beside(path, n, places, 5, name)) {
        snprintf(path, n, "%s", name);
    }
}

struct status shared_library_open(const char *name, const char *package, const struct shared_symbol *symbols)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    FAIL_IF(library == NULL, STATUS_UNAVAILABLE, "%s cannot be loaded (%s); install %s", name, dlerror(),
            package);
    for (const struct shared_symbol *s = symbols; s->name != NULL; s++) {
        *s->address = dlsym(library, s->name);
        FAIL_IF(*s->address == NULL, STATUS_UNAVAILABLE,
                "%s lacks %s: it is not the version that this kiln was built with; install "
                "%s and build kiln again",
                name, s->name, package);
    }
    return status_ok();
}
