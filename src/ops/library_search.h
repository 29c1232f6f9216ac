/* library_search: where CUDA's libraries are, on machines whose loader does not know: of the toolkit, of the wheels of Python,
 * or beside the driver in a container.  No Python is started: wheels lie at fixed places under a prefix. */
#ifndef KILN_OPS_LIBRARY_SEARCH_H
#define KILN_OPS_LIBRARY_SEARCH_H

#include "core/buf.h"

#include <stdbool.h>

/* Receives the path of a library in `path` [n], from the first place that has it: CUDA_HOME and CUDA_PATH; site-packages/nvidia of
 * VIRTUAL_ENV, CONDA_PREFIX, the python3 on PATH and HOME/.local; /usr/local/cuda*, the driver's folders and the system's.  False:
 * nowhere. */
bool library_search_find(char *path, size_t n, const char *name);

/* Appends the places, as patterns, with ", " between them. */
void library_search_describe(struct buf *text);

/* Opens a library of kiln's (dlopen, RTLD_NOW) and, while the loader misses libraries of CUDA that it leans on, those first, from
 * where they are found; they stay open.  NULL: `why` [n] says what is missing and where it was looked for. */
void *library_search_open(const char *path, char *why, size_t n);

#endif
