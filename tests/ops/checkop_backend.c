/* The tables of this build: those of the cpu, and the cuda table where there is a GPU. */
#include "checkop_backend.h"

#include "ops/backend.h"
#include "ops/cpu/cpu_isa.h"
#include "test.h"

struct checkop_backend checkop_find_backend(const char *name)
{
    if (strncmp(name, "cpu-", 4) == 0) {
        const struct ops *o = cpu_table(name + 4);
        if (o == NULL) {
            test_skip(name, "this processor lacks %s; one that has it runs this", name + 4);
        }
        return (struct checkop_backend){o, &device_cpu};
    }
    struct backend b;
    struct status s = backend_find(&b, name);
    if (failed(s)) {
        test_skip(name, "%s; an NVIDIA GPU and a build with nvcc run this", s.message);
    }
    return (struct checkop_backend){b.ops, b.device};
}
