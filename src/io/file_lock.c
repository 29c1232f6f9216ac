#define _GNU_SOURCE
#include "io/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct status file_lock_open(int *fd, const char *path)
{
    struct stat info;
    *fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    FAIL_IF(*fd < 0, STATUS_IO, "cannot create %s: %s", path, strerror(errno));
    if (fstat(*fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(*fd);
        *fd = -1;
        return status_error(STATUS_IO, "%s is not a regular file: remove it", path);
    }
    return status_ok();
}

bool file_lock_try(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bool file_lock_wait(int fd)
{
    enum { TRIES = 500, PAUSE_MS = 10 };
    for (int i = 0; !file_lock_try(fd); i++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || i == TRIES) {
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    return true;
}
