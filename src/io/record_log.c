#include "io/record_log.h"

#include "core/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct status record_log_open(struct record_log *l, const char *path, bool append)
{
    struct stat info;
    *l = (struct record_log){0};
    FAIL_IF(snprintf(l->path, sizeof l->path, "%s", path) >= (int)sizeof l->path, STATUS_USAGE,
            "the path %.60s... is longer than %zu bytes", path, sizeof l->path - 1);
    TRY(file_lines_open(&l->file, path, append));
    fflush(l->file);
    l->is_regular = fstat(fileno(l->file), &info) == 0 && S_ISREG(info.st_mode);
    return status_ok();
}

void record_log_close(struct record_log *l)
{
    if (l->file != NULL) {
        fclose(l->file);
        l->file = NULL;
    }
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

/* The end of the file before a record that could not be written completely. */
static void take_back(const struct record_log *l, off_t end)
{
    int why = errno;
    if (l->is_regular && end >= 0 && ftruncate(fileno(l->file), end) != 0) {
        why = errno;
    }
    errno = why;
}

int64_t record_log_append(struct record_log *l, const void *bytes, size_t n)
{
    if (l->file == NULL) {
        return 0;
    }
    int fd = fileno(l->file);
    off_t end = l->is_regular ? lseek(fd, 0, SEEK_END) : -1;
    if (!write_all(fd, bytes, n)) {
        take_back(l, end);
        if (l->n_lost++ == 0) {
            log_warning(
                "cannot write %s: %s; the run continues, and so does this log once it can be written again",
                l->path, strerror(errno));
        }
        return 0;
    }
    int64_t n_lost = l->n_lost;
    if (n_lost > 0) {
        log_warning("%s can be written again; %" PRId64 " records are missing in it", l->path, n_lost);
    }
    l->n_lost = 0;
    return n_lost;
}
