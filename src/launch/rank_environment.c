#define _GNU_SOURCE
#include "launch/rank_environment.h"

#include "core/log.h"
#include "launch/line_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files ---- */

static struct status add_line(void *context, char *line, const char *source)
{
    struct words *variables = context;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    line += strspn(line, " \t");
    if (*line == '\0' || *line == '#') {
        return status_ok();
    }
    size_t n = strspn(line, letters);
    FAIL_IF(n == 0 || line[n] != '=' || (line[0] >= '0' && line[0] <= '9'), STATUS_USAGE,
            "%s: '%.60s' is not NAME=VALUE; a name has letters, digits and _, and no blank before '='",
            source, line);
    FAIL_IF(strncmp(line, "OMPI_COMM_WORLD_", 16) == 0 || strncmp(line, "PMIX_", 5) == 0, STATUS_USAGE,
            "%s: mpirun sets %.*s for each rank; remove the line", source, (int)n, line);
    words_add(variables, "%s", line);
    return words_status(variables);
}

struct status env_file_read(struct words *variables, const char *path)
{
    return line_file_read(path, "environment file", add_line, variables);
}

/* ---- this process ---- */

/* Variables that kiln and the libraries that it loads read: NCCL, UCX and libfabric, OpenMP and BLAS, CUDA,
 * kiln's own.  Which devices are visible is each host's own affair. */
static const char *const prefixes[] = {"NCCL_",     "UCX_",  "FI_",   "OMP_",
                                       "OPENBLAS_", "CUDA_", "KILN_", "LD_LIBRARY_PATH="};
static const char *const left_out[] = {"CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER="};

static bool begins_with_any(const char *entry, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strncmp(entry, list[i], strlen(list[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void tell(const struct words *variables, int before, const char *path)
{
    log_info("%s: %d variables for all ranks", path, variables->n - before);
}

/* Reads a file that no flag names, and that may be missing.  STATUS_USAGE: it is not surely this user's. */
static struct status read_own(struct words *variables, const char *path)
{
    static const char why[] =
        "it would set variables of all ranks, LD_PRELOAD too, which runs code; remove it, "
        "make it a file of yours (chown, chmod go-w), or name it with --env_file";
    int before = variables->n;
    bool found;
    TRY(line_file_read_own(path, "environment file", why, add_line, variables, &found));
    if (found) {
        tell(variables, before, path);
    }
    return status_ok();
}

struct status rank_environment_read(struct words *variables, const char *path)
{
    static const char name[] = "./.deepspeed_env";
    const char *home = getenv("HOME");
    struct buf in_home = {0};
    struct status s = status_ok();
    if (home != NULL && home[0] == '/') {
        buf_printf(&in_home, "%s/%s", home, name + 2);
        s = buf_status(&in_home);
        s = failed(s) ? s : read_own(variables, buf_text(&in_home));
    }
    buf_fini(&in_home);
    TRY(s);
    TRY(read_own(variables, name));
    if (path != NULL) {
        int before = variables->n;
        TRY(env_file_read(variables, path));
        tell(variables, before, path);
    }
    return status_ok();
}

void rank_environment_export(struct words *names, const struct words *variables)
{
    for (char **e = environ; *e != NULL; e++) {
        if (begins_with_any(*e, prefixes, sizeof prefixes / sizeof prefixes[0]) &&
            !begins_with_any(*e, left_out, sizeof left_out / sizeof left_out[0]) &&
            !words_set_variable(variables, *e)) {
            words_add(names, "%.*s", (int)strcspn(*e, "="), *e);
        }
    }
}

int64_t rank_environment_number(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strtoll(value, NULL, 10);
        }
    }
    return -1;
}
