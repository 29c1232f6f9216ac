/* The cpu table: each kernel file fills in its slots, once for each instruction set that the processor has;
 * the last one is used. */
#include "ops/cpu/cpu_isa.h"
#include "ops/cpu/gemm_backend.h"

#include <pthread.h>
#include <string.h>

/* Every *_kernels.c file that fills in ops. */
/* clang-format off */
#define CPU_FILES(X, isa)                                                                                    \
    X(move, isa) X(quantize, isa) X(activation, isa) X(linear, isa) X(norm, isa) X(embed, isa)               \
    X(attention, isa) X(attention_backward, isa) X(loss, isa) X(span, isa) X(optim, isa) X(matrix, isa)
/* clang-format on */

#define CPU_DECLARE(file, isa) void file##_kernels_fill_##isa(struct ops *t);
#define CPU_FILL(file, isa)    file##_kernels_fill_##isa(t);

#define CPU_ISA(isa)                                                                                         \
    CPU_FILES(CPU_DECLARE, isa)                                                                              \
    void gemm_plain_kernels_fill_##isa(struct gemm_backend *t);                                              \
    void gemm_convert_kernels_fill_##isa(struct gemm_convert *t);                                            \
    static void fill_##isa(struct ops *t, struct gemm_backend *plain, struct gemm_convert *convert)          \
    {                                                                                                        \
        CPU_FILES(CPU_FILL, isa)                                                                             \
        gemm_plain_kernels_fill_##isa(plain);                                                                \
        gemm_convert_kernels_fill_##isa(convert);                                                            \
    }

static bool has_baseline(void)
{
    return true;
}

CPU_ISA(baseline)

#if defined(__x86_64__)
CPU_ISA(avx2)
CPU_ISA(avx512)
CPU_ISA(avx512bf16)

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

/* From the slowest to the fastest. */
static const struct isa {
    const char *name;
    bool (*has)(void);
    void (*fill)(struct ops *t, struct gemm_backend *plain, struct gemm_convert *convert);
} isas[] = {
    {"baseline", has_baseline, fill_baseline},
#if defined(__x86_64__)
    {"avx2", has_avx2, fill_avx2},
    {"avx512", has_avx512, fill_avx512},
    {"avx512bf16", has_avx512bf16, fill_avx512bf16},
#endif
};

enum { N_ISAS = sizeof isas / sizeof isas[0] };

static struct ops tables[N_ISAS];
static struct gemm_backend plain;
static struct gemm_convert convert;
static int best;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    for (int i = 0; i < N_ISAS; i++) {
        if (isas[i].has()) {
            tables[i].name = "cpu";
            isas[i].fill(&tables[i], &plain, &convert);
            best = i;
        }
    }
}

const struct ops *ops_cpu(void)
{
    pthread_once(&once, fill_tables);
    return &tables[best];
}

const char *ops_cpu_isa(void)
{
    pthread_once(&once, fill_tables);
    return isas[best].name;
}

bool cpu_isa_has_avx512(void)
{
    return strncmp(ops_cpu_isa(), "avx512", strlen("avx512")) == 0;
}

const char *ops_cpu_library(int i)
{
    return gemm_backend_line(i);
}

const struct gemm_backend *gemm_plain(void)
{
    pthread_once(&once, fill_tables);
    return &plain;
}

const struct gemm_convert *gemm_convert(void)
{
    pthread_once(&once, fill_tables);
    return &convert;
}

const struct ops *cpu_isa_table(const char *isa)
{
    pthread_once(&once, fill_tables);
    for (int i = 0; i < N_ISAS; i++) {
        if (strcmp(isas[i].name, isa) == 0 && tables[i].name != NULL) {
            return &tables[i];
        }
    }
    return NULL;
}
