#define _GNU_SOURCE /* dladdr1 */
#include "core/shared_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    path[slash == NULL ? 0 : slash - path] = '\0';
}

void shared_library_program_directory(char *path, size_t n)
{
    ssize_t length = readlink("/proc/self/exe", path, n - 1);
    path[length < 0 ? 0 : length] = '\0';
    cut_name(path);
}

/* Writes the directory of the shared library that this code is part of, or else of the program. */
static void own_directory(char *path, size_t n)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((void *)(uintptr_t)own_directory, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 &&
        map->l_name[0] != '\0') {
        snprintf(path, n, "%s", map->l_name);
        cut_name(path);
    } else {
        shared_library_program_directory(path, n);
    }
}

void shared_library_of_kiln(char *path, size_t n, const char *name)
{
    char directory[1024];
    static const char *const places[] = {"", "/..", "/../lib"};
    own_directory(directory, sizeof directory);
    for (int i = 0; i < 3; i++) {
        snprintf(path, n, "%s%s/%s", directory, places[i], name);
        if (access(path, R_OK) == 0) {
            return;
        }
    }
    snprintf(path, n, "%s", name);
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
