#define _GNU_SOURCE
#include "core/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct status regular_file_open(int *fd, size_t *n, const char *path)
{
    struct stat info;
    *n = 0;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) {
        return status_error(STATUS_DATA, "cannot open %s: %s", path, strerror(errno));
    }
    bool known = fstat(*fd, &info) == 0;
    if (known && S_ISREG(info.st_mode)) {
        *n = (size_t)info.st_size;
        return status_ok();
    }
    struct status s = known ? status_error(STATUS_DATA, "%s is not a regular file", path)
                            : status_error(STATUS_IO, "cannot stat %s: %s", path, strerror(errno));
    close(*fd);
    *fd = -1;
    return s;
}
