#include "io/scatter_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_BUFFER = 4096, MOST_BUFFER = 1 << 20 };

void scatter_files_path(char path[FILE_PATH_BYTES], const char *prefix, int i)
{
    snprintf(path, FILE_PATH_BYTES, "%.*s%d", FILE_PATH_BYTES - 12, prefix, i);
}

struct status scatter_files_open(struct scatter_files *s, const char *prefix, int n, size_t memory)
{
    size_t each = memory / (size_t)n;
    *s = (struct scatter_files){.n = n};
    s->buffer_bytes = each < LEAST_BUFFER ? LEAST_BUFFER : each > MOST_BUFFER ? MOST_BUFFER : each;
    FAIL_IF((size_t)snprintf(s->prefix, sizeof s->prefix, "%s", prefix) >= sizeof s->prefix - 12,
            STATUS_USAGE, "the path %.60s... is too long for temporary files", prefix);
    s->buffers = malloc((size_t)n * s->buffer_bytes);
    s->buffered = calloc((size_t)n, sizeof *s->buffered);
    if (s->buffers == NULL || s->buffered == NULL) {
        free(s->buffers);
        free(s->buffered);
        *s = (struct scatter_files){0};
        return status_error(STATUS_MEMORY, "out of memory for the buffers of %d temporary files", n);
    }
    return status_ok();
}

static void write_out(struct scatter_files *s, int i, const unsigned char *p, size_t n)
{
    char path[FILE_PATH_BYTES];
    if (failed(s->status) || n == 0) {
        return;
    }
    scatter_files_path(path, s->prefix, i);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    while (fd >= 0 && n > 0) {
        ssize_t written = write(fd, p, n);
        if (written < 0 && errno != EINTR) {
            break;
        }
        p += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    if (n > 0) {
        s->status = status_error(STATUS_IO, "cannot write the temporary file %s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void flush(struct scatter_files *s, int i)
{
    write_out(s, i, s->buffers + (size_t)i * s->buffer_bytes, s->buffered[i]);
    s->buffered[i] = 0;
}

void scatter_files_put(struct scatter_files *s, int i, const void *bytes, size_t n)
{
    if (s->buffered[i] + n > s->buffer_bytes) {
        flush(s, i);
    }
    if (n > s->buffer_bytes) {
        write_out(s, i, bytes, n);
    } else if (n > 0) {
        memcpy(s->buffers + (size_t)i * s->buffer_bytes + s->buffered[i], bytes, n);
        s->buffered[i] += n;
    }
}

struct status scatter_files_close(struct scatter_files *s)
{
    for (int i = 0; i < s->n && s->buffers != NULL; i++) {
        flush(s, i);
    }
    struct status status = s->status;
    free(s->buffers);
    free(s->buffered);
    *s = (struct scatter_files){0};
    return status;
}
