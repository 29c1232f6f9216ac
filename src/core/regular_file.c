#define _GNU_SOURCE
#include "core/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What git leaves in the place of a large file that `git lfs` has not fetched (git-lfs.com, the specification
 * of pointers). */
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
    }
    struct status s = known && S_ISREG(info.st_mode) ? check_pointer(*fd, *n, path)
                      : known ? status_error(STATUS_DATA, "%s is not a regular file", path)
                              : status_error(STATUS_IO, "cannot stat %s: %s", path, strerror(errno));
    if (failed(s)) {
        close(*fd);
        *fd = -1;
        *n = 0;
    }
    return s;
}
