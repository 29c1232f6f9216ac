#define _GNU_SOURCE
#include "io/dir_lock.h"

#include "io/file_lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OWNER_BYTES = 300 };

static struct status refused(const char *directory, int fd)
{
    if (errno != EWOULDBLOCK) {
        return status_error(STATUS_IO, "cannot lock %s/.lock: %s", directory, strerror(errno));
    }
    char owner[OWNER_BYTES];
    ssize_t n = pread(fd, owner, sizeof owner - 1, 0);
    owner[n > 0 ? n : 0] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    return status_error(STATUS_IO,
                        "%s is in use by another run (%s); wait for it, stop it, or choose another directory",
                        directory, *owner != '\0' ? owner : "which has just started");
}

/* Writes what a second run's error names; the lock works without it. */
static void write_owner(int fd)
{
    char host[256] = "";
    char owner[OWNER_BYTES];
    gethostname(host, sizeof host - 1);
    int n = snprintf(owner, sizeof owner, "host %s, pid %ld\n", host, (long)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, owner, (size_t)n, 0) != n) {
        (void)!ftruncate(fd, 0);
    }
}

struct status dir_lock_acquire(struct dir_lock *lock, const char *directory)
{
    char path[1024];
    lock->fd = -1;
    if ((size_t)snprintf(path, sizeof path, "%s/.lock", directory) >= sizeof path) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %zu bytes", directory,
                            sizeof path - 1);
    }
    int fd;
    TRY(file_lock_open(&fd, path));
    if (!file_lock_try(fd)) {
        struct status s = refused(directory, fd);
        close(fd);
        return s;
    }
    write_owner(fd);
    lock->fd = fd;
    return status_ok();
}

void dir_lock_release(struct dir_lock *lock)
{
    if (lock->fd >= 0) {
        close(lock->fd);
    }
    lock->fd = -1;
}
