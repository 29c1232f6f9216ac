#include "core/launcher.h"

#include "core/buf.h"
#include "core/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Variables that each launcher sets in every process it starts.  SLURM_NTASKS is not one of them: it is also
 * set in a batch script, which runs once.  Processes started by srun have the variables of its job step
 * (srun(1), OUTPUT ENVIRONMENT VARIABLES). */
static const struct variable {
    const char *name;
    bool is_count; /* the number of ranks; else this rank's number, from 0 */
} variables[] = {
    {"WORLD_SIZE", true}, /* torchrun, deepspeed */
    {"RANK", false},
    {"LOCAL_RANK", false},
    {"OMPI_COMM_WORLD_SIZE", true}, /* Open MPI */
    {"OMPI_COMM_WORLD_RANK", false},
    {"PMIX_RANK", false}, /* Open MPI 5, srun --mpi=pmix */
    {"PMI_SIZE", true},   /* MPICH, Intel MPI, srun --mpi=pmi2 */
    {"PMI_RANK", false},
    {"MV2_COMM_WORLD_SIZE", true}, /* MVAPICH2 */
    {"MV2_COMM_WORLD_RANK", false},
    {"SLURM_STEP_NUM_TASKS", true}, /* srun */
    {"SLURM_PROCID", false},        /* 0 in a batch script */
};

static struct status several(const char *name, const char *value)
{
    return status_error(
        STATUS_UNAVAILABLE,
        "%s is %s: this process is one of several, and each would train alone and write over the "
        "others' files; training with several ranks is not there yet, start kiln once without a launcher%s%s",
        name, value, name[0] == '-' ? "" : ", or unset ", name[0] == '-' ? "" : name);
}

static struct status check_variable(const struct variable *v, const char *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0) {
        return status_error(STATUS_USAGE,
                            "environment variable %s is '%s', but must be a %s; unset it or correct it",
                            v->name, value, v->is_count ? "number of ranks" : "rank");
    }
    return number > (v->is_count ? 1 : 0) ? several(v->name, value) : status_ok();
}

/* Decodes base64 of either alphabet (RFC 4648 sections 4 and 5); false at another character. */
static bool decode_base64(struct buf *out, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char *p = text; *p != '\0' && *p != '='; p++) {
        const char *digit = strchr(digits, *p == '-' ? '+' : *p == '_' ? '/' : *p);
        if (digit == NULL) {
            return false;
        }
        bits = bits << 6 | (uint32_t)(digit - digits);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            buf_putc(out, (char)(bits >> n_bits & 0xff));
        }
    }
    return true;
}

static struct status check_world_info(const char *text)
{
    struct buf decoded = {0};
    json_t *hosts = NULL, *slots;
    const char *host;
    size_t n_ranks = 0;
    if (!decode_base64(&decoded, text)) {
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

struct status launcher_check_alone(const struct launcher_flags *flags)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);
        if (value != NULL && value[0] != '\0') {
            TRY(check_variable(&variables[i], value));
        }
    }
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
