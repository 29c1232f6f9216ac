#include "cmd/build_facts.h"

#include <stdio.h>

extern const char build_commit[]; /* of cmake/facts.cmake; "" where git knows none */

void build_facts_print(void)
{
    puts("kiln " KILN_VERSION);
    if (build_commit[0] != '\0') {
        printf("commit     %s\n", build_commit);
    }
    puts("compiler   " KILN_COMPILER "\nkernels    " KILN_KERNELS "\nlibraries  " KILN_LIBRARIES);
}
