/* Each kernel file fills in its slots, once for each instruction set that the processor has; the table of
 * the fastest is used. */

#include "ops/cpu/cpu_isa.h"
#include "ops/cpu/gemm.h"

#include <pthread.h>
#include <string.h>

/* Every *_kernels.c file that fills in ops. */
/* clang-format off */
#define CPU_FILES(X, isa)                                                                                    \
    X(move, isa) X(quantize, isa) X(activation, isa) X(gate, isa) X(linear, isa) X(norm, isa)                \
    X(embed, isa) X(attention, isa) X(attention_backward, isa) X(attention_cached, isa) X(loss, isa)         \
    X(span, isa) X(token_choice, isa) X(optim, isa) X(matrix, isa)
/* clang-format on */

#define CPU_DECLARE(file, isa) void file##_kernels_fill_##isa(struct ops *t);
#define CPU_FILL(file, isa)    file##_kernels_fill_##isa(t);

#define CPU_DEFINE(isa)                                                                                      \
    CPU_FILES(CPU_DECLARE, isa)                                                                              \
    static void fill_##isa(struct ops *t)                                                                    \
    {                                                                                                        \
        CPU_FILES(CPU_FILL, isa)                                                                             \
    }
#define CPU_ROW(isa) fill_##isa,

CPU_ISAS(CPU_DEFINE)

static void (*const fills[])(struct ops *t) = {CPU_ISAS(CPU_ROW)};
static struct ops tables[N_CPU_ISAS]; /* without a name: the processor lacks the instruction set */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    for (enum cpu_isa isa = 0; isa < N_CPU_ISAS; isa++) {
        if (cpu_isa_is_there(isa)) {
            tables[isa].name = "cpu";
            fills[isa](&tables[isa]);
        }
    }
}

const struct ops *ops_cpu(void)
{
    pthread_once(&once, fill_tables);
    return &tables[cpu_isa_best()];
}

bool ops_cpu_multiplies_int8(void)
{
    return gemm_multiplies_int8();
}

const char *ops_cpu_isa(void)
{
    return cpu_isa_name(cpu_isa_best());
}

struct status ops_cpu_check(void)
{
    return cpu_isa_check();
}

const char *ops_cpu_library(int i)
{
    return gemm_backend_line(i);
}

const struct ops *cpu_table(const char *isa)
{
    pthread_once(&once, fill_tables);
    for (enum cpu_isa i = 0; i < N_CPU_ISAS; i++) {
        if (strcmp(cpu_isa_name(i), isa) == 0 && tables[i].name != NULL) {
            return &tables[i];
        }
    }
    return NULL;
}
