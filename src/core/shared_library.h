/* shared_library: libraries that are loaded when they are first needed, since few commands need them and each
 * start of the program would pay for them and all that they lean on. */
#ifndef KILN_CORE_SHARED_LIBRARY_H
#define KILN_CORE_SHARED_LIBRARY_H

#include "core/status.h"

#include <stddef.h>

struct shared_symbol {
    const char *name;
    void **address; /* address of the pointer to the function */
};

/* Loads the library by the name that it was built against and finds the symbols, of which a row without a
 * name is the end. STATUS_UNAVAILABLE if it, or one of them, is not on this machine; `package` says what to
 * install. */
struct status shared_library_open(const char *name, const char *package, const struct shared_symbol *symbols);

/* Writes to `path` [n] where a library of kiln's is: in the directory of the program, or of the libkiln.so
 * that it has loaded, the one above, ../lib, or lib/kiln, where Debian has it; else its bare name, for the
 * system's paths. */
void shared_library_of_kiln(char *path, size_t n, const char *name);

/* Writes the directory of the program, or of the libkiln.so that it has loaded, to `path` [n], without the
 * last slash; "" if it is unknown. */
void shared_library_own_directory(char *path, size_t n);

/* Writes the path of the program kiln, which is this process or, where that has loaded libkiln.so, beside it
 * or in ../bin; else its bare name, for PATH. */
void shared_library_program(char *path, size_t n);

#endif
