#include "core/shared_library.h"

#include <dlfcn.h>
#include <stddef.h>

struct status shared_library_open(const char *name, const char *package, const struct shared_symbol *symbols)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return status_error(STATUS_UNAVAILABLE, "%s cannot be loaded (%s); install %s", name, dlerror(),
                            package);
    }
    for (const struct shared_symbol *s = symbols; s->name != NULL; s++) {
        *s->address = dlsym(library, s->name);
        if (*s->address == NULL) {
            return status_error(STATUS_UNAVAILABLE,
                                "%s has no %s: it is another version than this kiln was built with; "
                                "install %s and build again",
                                name, s->name, package);
        }
    }
    return status_ok();
}
