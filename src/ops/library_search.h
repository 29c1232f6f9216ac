/* library_search: finds CUDA's libraries on machines whose loader does not: in the toolkit, in Python wheels,
 * or next to the driver in a container.  It does not start Python: wheels are at fixed places below a
 * prefix. */
#ifndef KILN_OPS_LIBRARY_SEARCH_H
#define KILN_OPS_LIBRARY_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of a library to `path` [n], from the first place that has it: CUDA_HOME and CUDA_PATH;
 * site-packages/nvidia of VIRTUAL_ENV, CONDA_PREFIX, the python3 on PATH and HOME/.local; /usr/local/cuda*,
 * the driver's folders and the system's.  False: nowhere. */
bool library_search_find(char *path, size_t n, const char *name);

/* Opens a library of kiln's (dlopen, RTLD_NOW).  While the loader misses CUDA libraries that it depends on,
 * opens those first, from the places above; they stay open.  NULL: `why` [n] says what is missing and where
 * it was looked for. */
void *library_search_open(const char *path, char *why, size_t n);

#endif
