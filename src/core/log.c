#include "core/log.h"

#include "core/progress.h"

#include <stdarg.h>
#include <stdio.h>

static enum log_level threshold = LOG_QUIET;
static char rank_prefix[24] = ""; /* "rank 1: " */

void log_set_level(enum log_level level)
{
    threshold = level;
}

void log_set_rank(int rank)
{
    if (rank > 0) {
        snprintf(rank_prefix, sizeof rank_prefix, "rank %d: ", rank);
        log_set_level(LOG_WARNING);
    }
}

static void write_line(enum log_level level, const char *prefix, const char *format, va_list args)
{
    if (level > threshold) {
        return;
    }
    progress_clear_line();
    flockfile(stderr);
    fputs(rank_prefix, stderr);
    fputs(prefix, stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_INFO, "", format, args);
    va_end(args);
}

void log_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_WARNING, "warning: ", format, args);
    va_end(args);
}

void log_error(struct status s)
{
    if (threshold == LOG_QUIET) {
        return;
    }
    progress_clear_line();
    fprintf(stderr, "%skiln: error: %s\n", rank_prefix, s.message);
}
