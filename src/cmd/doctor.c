/* kiln doctor: what this machine and this build have: processor, memory, each optional library, on or off and
 * why, and the rate of matrix products, which limits training. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/host.h"
#include "core/shared_library.h"
#include "fetch/http_get.h"
#include "fetch/unpack.h"
#include "http/http.h"
#include "io/hdf5_file.h"
#include "ops/cpu/gemm.h"
#include "ops/backend.h"
#include "ops/plain_ops.h"
#include "watch/ceilings.h"

#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct doctor_args {
    const char *plain_ops;
    struct command_flags common;
};

static const struct option options[] = {
    OPTION_ENV_ROW("plain_ops", offsetof(struct doctor_args, plain_ops), NULL, "OPS", "KILN_PLAIN_OPS",
                   "check these names of ops, which a run would compute by their definition"),
    DRY_RUN_ROW(offsetof(struct doctor_args, common.dry_run), "list everything, without measuring"),
    {0},
};

static void print_cpu(void)
{
    printf("cpu        %s, %ld processors, %d threads, kernels for %s\n", host_cpu_name().text,
           sysconf(_SC_NPROCESSORS_ONLN), omp_get_max_threads(), ops_cpu_isa());
    printf("memory     %.1f GiB free\n", (double)device_cpu.free_bytes() / 0x1p30);
}

static void print_backends(void)
{
    for (int i = 0; gemm_backend_line(i) != NULL; i++) {
        printf("%s%s\n", i == 0 ? "products   " : "           ", gemm_backend_line(i));
    }
    printf("hdf5       %s\n", hdf5_file_version() != NULL ? hdf5_file_version() : "not built in");
    printf("network    %s\n",
           http_version() != NULL ? http_version() : "not built in: kiln fetch needs libcurl");
    printf("archives   %s\n",
           unpack_version() != NULL ? unpack_version() : "not built in: unpacking needs libarchive");
    printf("server     %s%s\n", http_server_library() != NULL ? "libmicrohttpd " : "",
           http_server_library() != NULL ? http_server_library()
                                         : "not built in: answering over HTTP needs libmicrohttpd");
    char mpi[1100];
    shared_library_of_kiln(mpi, sizeof mpi, "libkiln_mpi.so");
    printf("mpi        %s\n",
           access(mpi, R_OK) == 0 ? mpi : "not built in: several ranks need libopenmpi-dev and openmpi-bin");
    char gpu[200];
    struct status s = backend_describe_gpu(gpu, sizeof gpu);
    printf("cuda       %s\n", failed(s) ? s.message : gpu);
    char choices[8000], *save;
    backend_describe_choices(choices, sizeof choices);
    for (char *line = strtok_r(choices, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        printf("           %s\n", line);
    }
}

/* Every op, and who serves it. */
static void print_ops(const char *plain)
{
    enum { COLUMNS = 100 };
    printf("ops        ");
    for (int i = 0, column = 0; i < OP_WATCH_N_OPS; i++) {
        int n = (int)strlen(op_watch_name(i)) + 2;
        printf("%s%s%s", column + n > COLUMNS ? "\n           " : "", op_watch_name(i),
               i + 1 < OP_WATCH_N_OPS ? ", " : "\n");
        column = column + n > COLUMNS ? n : column + n;
    }
    printf("           by the device's kernels, but by their definition: %s (--plain_ops, KILN_PLAIN_OPS)\n",
           plain == NULL ? "none" : plain);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    (void)n_positional, (void)positional;
    const struct doctor_args *a = args;
    struct backend cpu;
    TRY(backend_find(&cpu, "cpu"));
    TRY(plain_ops_check(a->plain_ops));
    printf("kiln       %s\n", KILN_VERSION);
    print_cpu();
    print_backends();
    print_ops(a->plain_ops);
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};
    for (int i = 0; i < 2 && !a->common.dry_run; i++) {
        double flops_per_s;
        TRY(ceiling_products(&cpu, ceiling_size_of(cpu.device), (struct precision){.dtype = dtypes[i]},
                             &flops_per_s));
        printf("%s%s products by %s: %.0f GFLOP/s\n", i == 0 ? "measured   " : "           ",
               dtype_name(dtypes[i]), gemm_backend_name(dtypes[i]), flops_per_s * 1e-9);
    }
    return status_ok();
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "show what this machine and this build have, and how fast they multiply matrices",
    .options = options,
    .args_bytes = sizeof(struct doctor_args),
    .run = run,
};
