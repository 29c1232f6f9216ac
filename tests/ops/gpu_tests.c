/* gpu_tests: `gpu_tests NAME [arguments]` runs one test.  Linked twice: as emulated_tests with the kernels of
 * the cuda table emulated on the cpu. */
#include "gpu_tests.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {
    {"test_cuda_bench", test_cuda_bench},       {"test_cuda_bits", test_cuda_bits},
    {"test_cuda_fp8", test_cuda_fp8},           {"test_cuda_generate", test_cuda_generate},
    {"test_cuda_half", test_cuda_half},         {"test_cuda_loss_scale", test_cuda_loss_scale},
    {"test_cuda_maxima", test_cuda_maxima},     {"test_cuda_replay", test_cuda_replay},
    {"test_cuda_residual", test_cuda_residual}, {"test_cuda_rounding", test_cuda_rounding},
    {"test_cuda_segments", test_cuda_segments}, {"test_cuda_session", test_cuda_session},
    {"test_cuda_squad", test_cuda_squad},       {"test_cuda_training", test_cuda_training},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "test_cuda_large") == 0) {
        return test_cuda_large(argc - 1, argv + 1);
    }
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (strcmp(name, tests[i].name) == 0) {
            return tests[i].run();
        }
    }
    fprintf(stderr, "gpu_tests: no test is called '%s'; tests/ops/gpu_tests.h has their names\n", name);
    return 64;
}
