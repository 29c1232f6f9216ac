#include "core/launcher.h"

#include "core/base64.h"
#include "core/buf.h"
#include "core/json.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Variables that each launcher sets in every process it starts, in the order in which they are believed:
 * processes that mpirun starts in a job of Slurm have Slurm's too.  SLURM_NTASKS is not one of them: it is
 * also set in a batch script, which runs once.  Processes started by srun have the variables of its job step
 * (srun(1), OUTPUT ENVIRONMENT VARIABLES). */
enum variable_kind { COUNT, RANK, LOCAL_RANK }; /* numbers of ranks, or this one's number, from 0 */

static const struct variable {
    const char *name;
    enum launcher_kind launcher;
    enum variable_kind kind;
} variables[] = {
    {"OMPI_COMM_WORLD_SIZE", LAUNCHER_OPEN_MPI, COUNT},
    {"OMPI_COMM_WORLD_RANK", LAUNCHER_OPEN_MPI, RANK},
    {"OMPI_COMM_WORLD_LOCAL_RANK", LAUNCHER_OPEN_MPI, LOCAL_RANK},
    {"PMIX_RANK", LAUNCHER_PMIX, RANK},      /* srun --mpi=pmix, which does not say how many; Open MPI 5 */
    {"PMI_SIZE", LAUNCHER_OTHER_MPI, COUNT}, /* MPICH, Intel MPI, srun --mpi=pmi2 */
    {"PMI_RANK", LAUNCHER_OTHER_MPI, RANK},
    {"MV2_COMM_WORLD_SIZE", LAUNCHER_OTHER_MPI, COUNT}, /* MVAPICH2 */
    {"MV2_COMM_WORLD_RANK", LAUNCHER_OTHER_MPI, RANK},
    {"SLURM_STEP_NUM_TASKS", LAUNCHER_SLURM, COUNT}, /* srun */
    {"SLURM_PROCID", LAUNCHER_SLURM, RANK},          /* 0 in a batch script */
    {"WORLD_SIZE", LAUNCHER_TORCH, COUNT},           /* torchrun, deepspeed, Kubernetes' training operator */
    {"RANK", LAUNCHER_TORCH, RANK},
    {"LOCAL_RANK", LAUNCHER_TORCH, LOCAL_RANK},
};

enum { N_VARIABLES = sizeof variables / sizeof variables[0] };

/* The variable's number; *is_set is false if it is unset or empty. */
static struct status read_variable(const struct variable *v, bool *is_set, int64_t *number)
{
    const char *value = getenv(v->name);
    char *end;
    *is_set = value != NULL && value[0] != '\0';
    if (!*is_set) {
        return status_ok();
    }
    errno = 0;
    *number = strtoll(value, &end, 10);
    FAIL_IF(end == value || *end != '\0' || errno != 0, STATUS_USAGE,
            "environment variable %s is '%s', but must be a %s; unset it or correct it", v->name, value,
            v->kind == COUNT ? "number of ranks" : "rank");
    return status_ok();
}

bool launcher_serves_mpi(void)
{
    /* set by mpirun and srun, which serve PMIx (its standard, 5.3) */
    return getenv("PMIX_NAMESPACE") != NULL;
}

struct status launcher_most_sharing(int *most)
{
    const char *value = getenv("KILN_COMM_WINDOW");
    char *end;
    *most = INT_MAX;
    if (value == NULL || value[0] == '\0') {
        return status_ok();
    }
    long number = strtol(value, &end, 10);
    *most = (int)number;
    return *end == '\0' && number >= 0 && number <= INT_MAX
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "environment variable KILN_COMM_WINDOW is '%s', but must be the number of "
                              "ranks of a node that share memory; 0: off",
                              value);
}

struct status launcher_timeout(double *seconds)
{
    const char *value = getenv("KILN_COMM_TIMEOUT");
    char *end;
    *seconds = LAUNCHER_TIMEOUT_S;
    if (value == NULL || value[0] == '\0') {
        return status_ok();
    }
    *seconds = strtod(value, &end);
    return *end == '\0' && *seconds > 0 && *seconds <= 1e6
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "environment variable KILN_COMM_TIMEOUT is '%s', but must be the number of "
                              "seconds that ranks wait for each other, above 0",
                              value);
}

struct status launcher_silence(double *seconds)
{
    const char *value = getenv("KILN_COMM_SILENCE");
    char *end;
    *seconds = LAUNCHER_SILENCE_S;
    if (value == NULL || value[0] == '\0') {
        return status_ok();
    }
    *seconds = strtod(value, &end);
    return *end == '\0' && (*seconds == 0 || (*seconds >= 1 && *seconds <= 1e6))
               ? status_ok()
               : status_error(
                     STATUS_USAGE,
                     "environment variable KILN_COMM_SILENCE is '%s', but must be the number of seconds "
                     "without a heartbeat after which a rank counts as lost, from 1 to 1000000; 0: off",
                     value);
}

static bool means_several(const struct variable *v, int64_t number)
{
    return number > (v->kind == COUNT ? 1 : 0);
}

struct status launcher_find_ranks(struct launcher_ranks *ranks)
{
    bool is_set;
    int64_t number = 0;
    *ranks = (struct launcher_ranks){.kind = LAUNCHER_NONE};
    for (int i = 0; i < N_VARIABLES; i++) {
        TRY(read_variable(&variables[i], &is_set, &number));
        if (is_set && ranks->kind == LAUNCHER_NONE && means_several(&variables[i], number)) {
            *ranks = (struct launcher_ranks){variables[i].launcher, variables[i].name, number,
                                             variables[i].kind == COUNT ? number : 0};
        }
    }
    if (ranks->kind == LAUNCHER_SLURM && launcher_serves_mpi()) {
        ranks->kind = LAUNCHER_PMIX; /* rank 0: PMIX_RANK does not show that there are others */
    }
    return status_ok();
}

int64_t launcher_rank(void)
{
    struct launcher_ranks ranks;
    bool is_set = false;
    int64_t number = 0;
    if (failed(launcher_find_ranks(&ranks))) {
        return 0;
    }
    for (int i = 0; i < N_VARIABLES && !is_set; i++) {
        if (variables[i].launcher == ranks.kind && variables[i].kind == RANK) {
            is_set = !failed(read_variable(&variables[i], &is_set, &number)) && is_set;
        }
    }
    return is_set ? number : 0;
}

static struct status several(const char *name, const char *value)
{
    return status_error(STATUS_UNAVAILABLE,
                        "%s is %s, but no launcher has started this process as one of several: start the "
                        "ranks by `mpirun -n N kiln ...` or `srun --mpi=pmix kiln ...`, or leave %s out",
                        name, value, name);
}

static struct status check_world_info(const char *text)
{
    struct buf decoded = {0};
    json_t *hosts = NULL, *slots;
    const char *host;
    size_t n_ranks = 0;
    if (!base64_decode(&decoded, text)) {
        buf_clear(&decoded); /* the empty text is not JSON, so it is refused below */
    }
    struct status s = buf_status(&decoded);
    s = failed(s) ? s
                  : json_parse(&hosts, buf_text(&decoded), decoded.n, "--world_info, decoded from base64,");
    buf_fini(&decoded);
    if (failed(s)) {
        s.code = STATUS_USAGE;
        return s;
    }
    json_object_foreach(hosts, host, slots)
    {
        n_ranks += json_array_size(slots);
    }
    json_decref(hosts);
    char count[32];
    snprintf(count, sizeof count, "for %zu ranks", n_ranks);
    return n_ranks > 1 ? several("--world_info", count) : status_ok();
}

static struct status check_count(const char *name, int64_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, n);
    return n > 1 ? several(name, text) : status_ok();
}

struct status launcher_check_flags(const struct launcher_flags *flags)
{
    if (flags->local_rank > 0) {
        char rank[32];
        snprintf(rank, sizeof rank, "%" PRId64, flags->local_rank);
        return several("--local_rank", rank);
    }
    TRY(check_count("--num_nodes", flags->num_nodes));
    TRY(check_count("--num_gpus", flags->num_gpus));
    if (flags->hostfile != NULL) {
        return several("--hostfile", flags->hostfile);
    }
    return flags->world_info == NULL ? status_ok() : check_world_info(flags->world_info);
}
