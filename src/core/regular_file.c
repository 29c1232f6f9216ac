#define _GNU_SOURCE
#include "core/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Refuses a pointer, which git leaves instead of a large file that `git lfs` has not fetched (git-lfs.com,
 * the specification of pointers). */
static struct status check_pointer(int fd, size_t n, const char *path)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    enum { N_BEGIN = sizeof begin - 1, MOST_BYTES = 1024 };
    char head[N_BEGIN];
    bool is_pointer = n > N_BEGIN && n < MOST_BYTES && pread(fd, head, N_BEGIN, 0) == N_BEGIN &&
                      memcmp(head, begin, N_BEGIN) == 0;
    return is_pointer ? status_error(STATUS_DATA,
                                     "%s is a pointer of Git LFS, not the file itself: run \"git lfs pull\" "
                                     "in the directory that was cloned, or download the file",
                                     path)
                      : status_ok();
}

enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* Whether an open file is one to be read; sets its size. */
static struct status check(int fd, const struct stat *info, size_t *n, const char *path)
{
    FAIL_IF(!S_ISREG(info->st_mode), STATUS_DATA, "%s is not a regular file", path);
    *n = (size_t)info->st_size;
    return check_pointer(fd, *n, path);
}

/* STATUS_USAGE unless only this user and the superuser can write the file. */
static struct status check_own(const struct stat *info, const char *path, const char *why)
{
    bool is_own = info->st_uid == geteuid() || info->st_uid == 0;
    return is_own && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0
               ? status_ok()
               : status_error(STATUS_USAGE, "%s %s: %s", path,
                              is_own ? "can be written by other users" : "belongs to another user", why);
}

/* Checks an opened file, and closes it if that fails; `why` NULL: it may be anyone's. */
static struct status check_open(int *fd, size_t *n, const char *path, const char *why)
{
    struct stat info;
    struct status s = fstat(*fd, &info) == 0
                          ? status_ok()
                          : status_error(STATUS_IO, "cannot stat %s: %s", path, strerror(errno));
    s = failed(s) || why == NULL ? s : check_own(&info, path, why);
    s = failed(s) ? s : check(*fd, &info, n, path);
    if (failed(s)) {
        close(*fd);
        *fd = -1;
        *n = 0;
    }
    return s;
}

struct status regular_file_open(int *fd, size_t *n, const char *path)
{
    *n = 0;
    *fd = open(path, FLAGS);
    return *fd >= 0 ? check_open(fd, n, path, NULL)
                    : status_error(STATUS_DATA, "cannot open %s: %s", path, strerror(errno));
}

struct status regular_file_open_own(int *fd, size_t *n, const char *path, const char *why)
{
    *n = 0;
    *fd = open(path, FLAGS | O_NOFOLLOW);
    if (*fd >= 0) {
        return check_open(fd, n, path, why);
    }
    int error = errno;
    return error == ELOOP            ? status_error(STATUS_USAGE, "%s is a symbolic link: %s", path, why)
           : access(path, F_OK) != 0 ? status_ok() /* nor is there one in a folder that cannot be read */
                                     : status_error(STATUS_DATA, "cannot open %s: %s", path, strerror(error));
}
