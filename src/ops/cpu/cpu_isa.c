#include "ops/cpu/cpu_isa.h"

#include <string.h>

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx512bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
#endif

static bool has_baseline(void)
{
    return true;
}

#define CPU_ISA_ROW(isa) {#isa, has_##isa},
static const struct {
    const char *name;
    bool (*is_there)(void);
} isas[] = {CPU_ISAS(CPU_ISA_ROW)};

const char *cpu_isa_name(enum cpu_isa isa)
{
    return isas[isa].name;
}

bool cpu_isa_is_there(enum cpu_isa isa)
{
    return isas[isa].is_there();
}

enum cpu_isa cpu_isa_best(void)
{
    enum cpu_isa best = N_CPU_ISAS - 1;
    while (!cpu_isa_is_there(best)) {
        best--;
    }
    return best;
}

bool cpu_isa_has_avx512(void)
{
    return strncmp(cpu_isa_name(cpu_isa_best()), "avx512", strlen("avx512")) == 0;
}
