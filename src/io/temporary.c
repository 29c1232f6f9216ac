#define _GNU_SOURCE
#include "io/temporary.h"

#include "core/log.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_KEPT_BYTES = 100, MOST_TRIES = 100 };

/* Bytes of `path` before its last name: "" or "directory/". */
static int directory_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (int)(slash + 1 - path);
}

static struct status new_name(struct temporary *t, const char *final)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return status_error(STATUS_IO, "cannot draw a name beside %s: %s", final, strerror(errno));
    }
    int directory = directory_bytes(final);
    if (snprintf(t->path, sizeof t->path, "%.*s.%.*s.kiln-%016" PRIx64 ".tmp", directory, final,
                 NAME_KEPT_BYTES, final + directory, random) >= (int)sizeof t->path) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", final,
                            FILE_PATH_BYTES - 1);
    }
    return status_ok();
}

/* Locks what was just created; false if a clean-up came first and took it.  A file system without locks has no
 * clean-up either. */
static bool keep(const struct temporary *t)
{
    struct stat there, here;
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return false;
    }
    return lstat(t->path, &there) == 0 && fstat(t->fd, &here) == 0 && there.st_ino == here.st_ino &&
           there.st_dev == here.st_dev;
}

/* EEXIST: another name is to be tried, since this one is taken, or a clean-up took it at once. */
static int create(const char *path, bool is_directory)
{
    if (!is_directory) {
        return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    if (mkdir(path, 0777) != 0) {
        return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int error = errno;
        errno = rmdir(path) != 0 && errno == ENOENT ? EEXIST : error;
    }
    return fd;
}

static struct status create_one(struct temporary *t, const char *final, bool is_directory)
{
    t->fd = -1;
    for (int i = 0; i < MOST_TRIES; i++) {
        TRY(new_name(t, final));
        t->fd = create(t->path, is_directory);
        if (t->fd >= 0 && keep(t)) {
            return status_ok();
        }
        if (t->fd < 0 && errno != EEXIST) {
            return status_error(STATUS_IO, "cannot create %s: %s", t->path, strerror(errno));
        }
        temporary_close(t);
    }
    return status_error(STATUS_IO, "cannot keep a temporary name beside %s: something removes each at once",
                        final);
}

struct status temporary_create_file(struct temporary *t, const char *final)
{
    return create_one(t, final, false);
}

struct status temporary_create_directory(struct temporary *t, const char *final)
{
    return create_one(t, final, true);
}

void temporary_close(struct temporary *t)
{
    if (t->fd >= 0) {
        close(t->fd);
    }
    t->fd = -1;
}

void temporary_remove(struct temporary *t)
{
    if (t->fd < 0) {
        return;
    }
    struct status s = file_remove_tree(t->path);
    if (failed(s)) {
        log_warning("%s", s.message);
    }
    temporary_close(t);
}
