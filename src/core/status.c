#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Does not clear the complete message: that took a twentieth of the time to read text. */
struct status status_ok(void)
{
    struct status s;
    s.code = STATUS_OK;
    s.message[0] = '\0';
    return s;
}

struct status status_error(enum status_code code, const char *format, ...)
{
    struct status s = {.code = code};
    va_list args;
    va_start(args, format);
    vsnprintf(s.message, sizeof s.message, format, args);
    va_end(args);
    return s;
}

struct status status_context(struct status inner, const char *format, ...)
{
    if (!failed(inner)) {
        return inner;
    }
    struct status s = {.code = inner.code};
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s.message, sizeof s.message, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof s.message) {
        snprintf(s.message + n, sizeof s.message - (size_t)n, ": %s", inner.message);
    }
    return s;
}

void check_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    fprintf(stderr, "kiln: internal error at %s:%d: (%s) does not hold: ", file, line, condition);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
