#include "ops/cpu/cpu_isa.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

static enum cpu_isa fastest(void)
{
    enum cpu_isa isa = N_CPU_ISAS - 1;
    while (!cpu_isa_is_there(isa)) {
        isa--;
    }
    return isa;
}

/* The environment is read once, since another thread may change it. */
static struct {
    const char *wanted;  /* NULL: nothing */
    enum cpu_isa chosen; /* the set that `wanted` names; N_CPU_ISAS: no set has that name */
    enum cpu_isa best;
} choice;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static enum cpu_isa find(const char *name)
{
    enum cpu_isa isa = 0;
    while (isa < N_CPU_ISAS && strcmp(name, cpu_isa_name(isa)) != 0) {
        isa++;
    }
    return isa;
}

static void choose(void)
{
    const char *wanted = getenv("KILN_ISA");
    choice.best = fastest();
    if (wanted == NULL || wanted[0] == '\0') {
        return;
    }
    choice.wanted = wanted;
    choice.chosen = find(wanted);
    if (choice.chosen < N_CPU_ISAS && cpu_isa_is_there(choice.chosen)) {
        choice.best = choice.chosen;
    }
}

struct status cpu_isa_check(void)
{
    pthread_once(&once, choose);
    if (choice.wanted == NULL || choice.best == choice.chosen) {
        return status_ok();
    }
    FAIL_IF(choice.chosen < N_CPU_ISAS, STATUS_UNAVAILABLE,
            "environment variable KILN_ISA is '%s', but this processor has at most %s; unset "
            "KILN_ISA, or choose a smaller set",
            choice.wanted, cpu_isa_name(choice.best));
    char names[80] = "";
    for (enum cpu_isa i = 0; i < N_CPU_ISAS; i++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", i == 0 ? "" : ", ", cpu_isa_name(i));
    }
    return status_error(STATUS_USAGE, "environment variable KILN_ISA is '%.40s', but must be one of %s",
                        choice.wanted, names);
}

enum cpu_isa cpu_isa_best(void)
{
    pthread_once(&once, choose);
    return choice.best;
}

bool cpu_isa_is_limited(void)
{
    pthread_once(&once, choose);
    return choice.wanted != NULL;
}

bool cpu_isa_has_avx512(void)
{
    return strncmp(cpu_isa_name(cpu_isa_best()), "avx512", strlen("avx512")) == 0;
}
