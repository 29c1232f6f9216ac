#define _GNU_SOURCE
#include "launch/env_file.h"

#include "launch/line_file.h"

#include <string.h>

static struct status add_line(void *context, char *line, const char *source)
{
    struct words *variables = context;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    line += strspn(line, " \t");
    if (*line == '\0' || *line == '#') {
        return status_ok();
    }
    size_t n = strspn(line, letters);
    if (n == 0 || line[n] != '=' || (line[0] >= '0' && line[0] <= '9')) {
        return status_error(
            STATUS_USAGE,
            "%s: '%.60s' is not NAME=VALUE; a name has letters, digits and _, and no blank before '='",
            source, line);
    }
    if (strncmp(line, "OMPI_COMM_WORLD_", 16) == 0 || strncmp(line, "PMIX_", 5) == 0) {
        return status_error(STATUS_USAGE, "%s: mpirun sets %.*s for each rank; remove the line", source,
                            (int)n, line);
    }
    words_add(variables, "%s", line);
    return words_status(variables);
}

struct status env_file_read(struct words *variables, const char *path)
{
    return line_file_read(path, "environment file", add_line, variables);
}

struct status env_file_read_own(struct words *variables, const char *path, bool *found)
{
    static const char why[] =
        "it would set variables of all ranks, LD_PRELOAD too, which runs code; remove it, "
        "make it a file of yours (chown, chmod go-w), or name it with --env_file";
    return line_file_read_own(path, "environment file", why, add_line, variables, found);
}
