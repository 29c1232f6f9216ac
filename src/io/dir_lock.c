#define _GNU_SOURCE
#include "io/dir_lock.h"

#include "io/file_lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OWNER_BYTES = 300 };

static struct status refused(const char *output, const char *lock, int fd)
{
    FAIL_IF(errno != EWOULDBLOCK, STATUS_IO, "cannot lock %s: %s", lock, strerror(errno));
    char owner[OWNER_BYTES];
    ssize_t n = pread(fd, owner, sizeof owner - 1, 0);
    owner[n > 0 ? n : 0] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    return status_error(STATUS_IO,
                        "%s is in use by another run (%s); wait for it, stop it, or choose another place",
                        output, *owner != '\0' ? owner : "which has just started");
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

/* Opens and locks the file `path`, for the output that a second run's error names. */
static struct status acquire(struct dir_lock *lock, const char *path, const char *output)
{
    int fd;
    lock->fd = -1;
    TRY(file_lock_open(&fd, path));
    if (!file_lock_try(fd)) {
        struct status s = refused(output, path, fd);
        close(fd);
        return s;
    }
    write_owner(fd);
    lock->fd = fd;
    return status_ok();
}

struct status dir_lock_acquire(struct dir_lock *lock, const char *directory)
{
    char path[FILE_PATH_BYTES];
    *lock = (struct dir_lock){.fd = -1};
    return (size_t)snprintf(path, sizeof path, "%s/.lock", directory) < sizeof path
               ? acquire(lock, path, directory)
               : status_error(STATUS_USAGE, "the path %.60s... is longer than %zu bytes", directory,
                              sizeof path - 1);
}

/* The file that was locked may be one that its last owner has just removed: then it is made again. */
struct status dir_lock_acquire_beside(struct dir_lock *lock, const char *path)
{
    const char *slash = strrchr(path, '/');
    int directory = slash == NULL ? 0 : (int)(slash + 1 - path);
    char parent[FILE_PATH_BYTES];
    *lock = (struct dir_lock){.fd = -1};
    FAIL_IF(strlen(path) >= FILE_PATH_BYTES, STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
            FILE_PATH_BYTES - 1);
    file_parent(parent, path);
    FAIL_IF(!file_exists(parent), STATUS_IO, "cannot write %s: its directory does not exist; make it first",
            path);
    snprintf(lock->beside, sizeof lock->beside, "%.*s.%s.lock", directory, path, path + directory);
    TRY(acquire(lock, lock->beside, path));
    while (!file_is_open_as(lock->fd, lock->beside)) {
        close(lock->fd);
        TRY(acquire(lock, lock->beside, path));
    }
    return status_ok();
}

void dir_lock_release(struct dir_lock *lock)
{
    if (lock->fd >= 0 && lock->beside[0] != '\0') {
        unlink(lock->beside);
    }
    if (lock->fd >= 0) {
        close(lock->fd);
    }
    lock->fd = -1;
}
