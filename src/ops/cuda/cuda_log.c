#include "ops/cuda/cuda_log.h"

#include <stdarg.h>
#include <stdio.h>

static void (*write_line)(enum log_level level, const char *line);

void cuda_log_to(void (*sink)(enum log_level level, const char *line))
{
    write_line = sink;
}

static void format_line(enum log_level level, const char *format, va_list args)
{
    char line[1024];
    if (write_line != NULL) {
        vsnprintf(line, sizeof line, format, args);
        write_line(level, line);
    }
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    format_line(LOG_INFO, format, args);
    va_end(args);
}

void log_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    format_line(LOG_WARNING, format, args);
    va_end(args);
}
