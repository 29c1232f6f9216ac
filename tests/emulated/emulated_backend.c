/* The kernels of the cuda table, run on the cpu. */
#include "checkop_backend.h"

#include "ops/cuda/table/cuda_slots.h"
#include "plain_products.h"
#include "test.h"

struct checkop_backend checkop_find_backend(const char *name)
{
    EXPECT(strcmp(name, "cuda") == 0, "no backend is called %s", name);
    return (struct checkop_backend){&ops_cuda, &device_emulated};
}
