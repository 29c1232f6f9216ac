#define _GNU_SOURCE
#include "launch/line_file.h"

#include "core/regular_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Far more than hosts and variables ever take; /dev/zero and a log by mistake have more. */
enum { MOST_BYTES = 16 << 20 };

/* Takes over an open file of n bytes. */
static struct status open_lines(FILE **f, int fd, size_t n, const char *path, const char *what)
{
    if (n > MOST_BYTES) {
        close(fd);
        return status_error(STATUS_DATA, "%s %s has %zu bytes, but the limit is %d: is it the right file?",
                            what, path, n, MOST_BYTES);
    }
    *f = fdopen(fd, "r");
    if (*f == NULL) {
        close(fd);
        return status_error(STATUS_MEMORY, "out of memory to read %s", path);
    }
    return status_ok();
}

static struct status read_lines(int fd, size_t n_all, const char *path, const char *what,
                                line_file_body *body, void *context)
{
    FILE *f = NULL;
    char *line = NULL, source[300];
    size_t capacity = 0;
    struct status s = status_ok();
    ssize_t n_bytes;
    TRY(open_lines(&f, fd, n_all, path, what));
    for (int n = 1; !failed(s) && (n_bytes = getline(&line, &capacity, f)) >= 0; n++) {
        snprintf(source, sizeof source, "%.240s, line %d", path, n);
        if (strlen(line) < (size_t)n_bytes) {
            s = status_error(STATUS_USAGE, "%s: the line has a NUL byte, so this is not a text file", source);
            break;
        }
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

struct status line_file_read(const char *path, const char *what, line_file_body *body, void *context)
{
    int fd;
    size_t n;
    TRY(status_context(regular_file_open(&fd, &n, path), "%s", what));
    return read_lines(fd, n, path, what, body, context);
}

struct status line_file_read_own(const char *path, const char *what, const char *why, line_file_body *body,
                                 void *context, bool *found)
{
    int fd;
    size_t n;
    TRY(regular_file_open_own(&fd, &n, path, why));
    *found = fd >= 0;
    return *found ? read_lines(fd, n, path, what, body, context) : status_ok();
}
