#define _GNU_SOURCE
#include "ops/library_search.h"

#include "core/buf.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, MOST_MISSING = 8 };

/* A folder of libraries, as a pattern below the value of a variable, the prefix of the python3 on PATH
 * (PYTHON), or the root. */
static const char PYTHON[] = "prefix of python3";

#define WHEELS "/lib/python3*/site-packages/nvidia/*/lib"

static const struct place {
    const char *under, *pattern;
} places[] = {
    {"CUDA_HOME", "/lib64"},
    {"CUDA_HOME", "/lib"},
    {"CUDA_PATH", "/lib64"},
    {"VIRTUAL_ENV", WHEELS},
    {"CONDA_PREFIX", WHEELS},
    {"CONDA_PREFIX", "/lib"},
    {PYTHON, WHEELS},
    {"HOME", "/.local" WHEELS},
    {NULL, "/usr/local/lib/python3*/dist-packages/nvidia/*/lib"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda*/lib64"},
    {NULL, "/usr/local/cuda*/targets/*-linux/lib"},
    {NULL, "/usr/local/nvidia/lib64"},
    {NULL, "/usr/lib/*-linux-gnu"},
    {NULL, "/usr/lib64"},
};

enum { N_PLACES = sizeof places / sizeof places[0] };

/* The prefix of the first python3 on PATH, the folder above its bin; in a virtual environment, that of the
 * environment. */
static bool python_prefix(char prefix[PATH_BYTES])
{
    static const char program[] = "/bin/python3";
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        int length = (int)strcspn(path, ":");
        int n = snprintf(prefix, PATH_BYTES, "%.*s/python3", length, path);
        int rest = n - (int)sizeof program + 1;
        if (n < PATH_BYTES && rest > 0 && strcmp(prefix + rest, program) == 0 && access(prefix, X_OK) == 0) {
            prefix[rest] = '\0';
            return true;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

/* Whether the place exists for this process; `folder` receives its pattern. */
static bool folder_of(char folder[PATH_BYTES], const struct place *p)
{
    char prefix[PATH_BYTES] = "";
    if (p->under == PYTHON) {
        if (!python_prefix(prefix)) {
            return false;
        }
    } else if (p->under != NULL) {
        const char *value = getenv(p->under);
        if (value == NULL || value[0] != '/') {
            return false;
        }
        snprintf(prefix, sizeof prefix, "%s", value);
    }
    int n = snprintf(folder, PATH_BYTES, "%s%s", prefix, p->pattern);
    return n > 0 && n < PATH_BYTES;
}

bool library_search_find(char *path, size_t n, const char *name)
{
    char folder[PATH_BYTES], pattern[2 * PATH_BYTES];
    bool found = false;
    for (int i = 0; i < N_PLACES && !found; i++) {
        glob_t matches;
        if (!folder_of(folder, &places[i])) {
            continue;
        }
        snprintf(pattern, sizeof pattern, "%s/%s", folder, name);
        if (glob(pattern, 0, NULL, &matches) == 0) {
            found = snprintf(path, n, "%s", matches.gl_pathv[0]) < (int)n;
        }
        globfree(&matches);
    }
    return found;
}

/* Appends the places as patterns, separated by ", ". */
static void describe_places(struct buf *text)
{
    char folder[PATH_BYTES];
    const char *between = "";
    for (int i = 0; i < N_PLACES; i++) {
        if (folder_of(folder, &places[i])) {
            buf_printf(text, "%s%s", between, folder);
            between = ", ";
        }
    }
}

/* "libcublasLt.so.13: cannot open shared object file: ..." names the library that the loader misses, if it is
 * CUDA's. */
static bool missing_name(char name[64], const char *error)
{
    size_t length = strcspn(error, ":");
    if (strncmp(error, "libcu", 5) != 0 || length >= 64 || strstr(error, "cannot open") == NULL) {
        return false;
    }
    snprintf(name, 64, "%.*s", (int)length, error);
    return true;
}

/* The driver is opened by CUDA's runtime, by its name alone: the loader takes it if it is open already. */
static void open_driver(void)
{
    static const char driver[] = "libcuda.so.1";
    char path[PATH_BYTES];
    if (dlopen(driver, RTLD_NOW) == NULL && library_search_find(path, sizeof path, driver)) {
        dlopen(path, RTLD_NOW);
    }
}

void *library_search_open(const char *path, char *why, size_t n)
{
    char name[64], found[PATH_BYTES];
    open_driver();
    for (int i = 0; i < MOST_MISSING; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            return library;
        }
        const char *error = dlerror();
        snprintf(why, n, "%s", error);
        if (!missing_name(name, error)) {
            return NULL;
        }
        if (!library_search_find(found, sizeof found, name)) {
            struct buf looked = {0};
            describe_places(&looked);
            snprintf(
                why, n,
                "%s was not found: name its folder in LD_LIBRARY_PATH, or CUDA's in CUDA_HOME; looked in %s",
                name, buf_text(&looked));
            buf_fini(&looked);
            return NULL;
        }
        if (dlopen(found, RTLD_NOW | RTLD_LOCAL) == NULL) {
            snprintf(why, n, "%s", dlerror());
            return NULL;
        }
    }
    return NULL;
}
