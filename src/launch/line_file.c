#define _GNU_SOURCE
#include "launch/line_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status line_file_read(const char *path, const char *what, line_file_body *body, void *context)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return status_error(STATUS_DATA, "%s %s cannot be read: %s", what, path, strerror(errno));
    }
    char *line = NULL, source[300];
    size_t capacity = 0;
    struct status s = status_ok();
    for (int n = 1; !failed(s) && getline(&line, &capacity, f) >= 0; n++) {
        snprintf(source, sizeof source, "%.240s, line %d", path, n);
        line[strcspn(line, "\r\n")] = '\0';
        s = body(context, line, source);
    }
    if (!failed(s) && ferror(f) != 0) {
        s = status_error(STATUS_DATA, "%s %s cannot be read: %s", what, path, strerror(errno));
    }
    free(line);
    fclose(f);
    return s;
}
