#include "ops/cuda/table/cuda_context.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 1024 };

static void (*write_line)(enum log_level level, const char *line);

void cuda_log_to(void (*sink)(enum log_level level, const char *line))
{
    write_line = sink;
}

static void put(enum log_level level, const char *line)
{
    if (write_line != NULL) {
        write_line(level, line);
    }
}

void log_info(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(LOG_INFO, line);
}

void log_warning(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(LOG_WARNING, line);
}
