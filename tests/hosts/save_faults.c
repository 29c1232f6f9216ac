/* save_faults: a library that is loaded before the C library into a run, and lets the n-th system call of its
 * saves, or of one rank's, fail, or kills the process at it (tests/hosts/test_save_faults.sh).
 *
 * SAVE_FAULTS="KIND N RANK DIRECTORY MARK": counted are calls on DIRECTORY itself and on names below it that
 * begin with "ckpt_" or ".ckpt_"; all below it, if it ends in "/". KIND: kill (instead of the call), torn
 * (after it, a write after its half), term (SIGTERM, and the call), error (EIO), full (this and all later
 * calls that need room: ENOSPC). RANK: of mpirun; 0 without it. The file MARK then has the call's name. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FILES = 4096 };

static struct {
    char kind[16], directory[1024], mark[1024];
    int point;
    bool is_on;
} plan;

static atomic_int n_calls;
static atomic_bool is_counted[MOST_FILES]; /* descriptors of such files */

__attribute__((constructor)) static void begin(void)
{
    const char *told = getenv("SAVE_FAULTS"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    int failing = -1;
    plan.is_on = told != NULL &&
                 sscanf(told, "%15s %d %d %1023s %1023s", plan.kind, &plan.point, &failing, plan.directory,
                        plan.mark) == 5 &&
                 (rank == NULL ? 0 : atoi(rank)) == failing;
}

static bool is_of_a_save(const char *path)
{
    size_t n = strlen(plan.directory);
    if (!plan.is_on || strncmp(path, plan.directory, n) != 0) {
        return false;
    }
    return path[n] == '\0' || path[n - 1] == '/' || strncmp(path + n, "/ckpt_", 6) == 0 ||
           strncmp(path + n, "/.ckpt_", 7) == 0;
}

static bool is(const char *kind)
{
    return strcmp(plan.kind, kind) == 0;
}

/* Counts a call; true if it must fail.  *is_here: the process is to die after it. */
static bool fault(const char *call, bool needs_room, bool *is_here)
{
    int n = atomic_fetch_add(&n_calls, 1) + 1;
    *is_here = n == plan.point;
    if (*is_here) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, plan.mark, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        syscall(SYS_write, fd, call, strlen(call));
        syscall(SYS_close, fd);
    }
    if (*is_here && is("kill")) {
        raise(SIGKILL);
    } else if (*is_here && is("term")) {
        kill(getpid(), SIGTERM);
    }
    errno = is("full") ? ENOSPC : EIO;
    return (*is_here && is("error")) || (n >= plan.point && is("full") && needs_room);
}

static void die_after(bool is_here)
{
    if (is_here && is("torn")) {
        raise(SIGKILL);
    }
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    bool counts = is_of_a_save(path), is_here = false;
    if (counts && fault("open", (flags & O_CREAT) != 0, &is_here)) {
        return -1;
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && fd < MOST_FILES) {
        atomic_store(&is_counted[fd], counts);
    }
    die_after(is_here);
    return fd;
}

int close(int fd)
{
    if (fd >= 0 && fd < MOST_FILES) {
        atomic_store(&is_counted[fd], false);
    }
    return (int)syscall(SYS_close, fd);
}

static bool counts_file(int fd)
{
    return fd >= 0 && fd < MOST_FILES && atomic_load(&is_counted[fd]);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    bool is_here = false;
    if (counts_file(fd) && fault("write", true, &is_here)) {
        return -1;
    }
    ssize_t written = syscall(SYS_write, fd, bytes, is_here && is("torn") ? n / 2 : n);
    die_after(is_here);
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    bool is_here = false;
    if (counts_file(fd) && fault("pwrite", true, &is_here)) {
        return -1;
    }
    ssize_t written = syscall(SYS_pwrite64, fd, bytes, is_here && is("torn") ? n / 2 : n, at);
    die_after(is_here);
    return written;
}

int fsync(int fd)
{
    bool is_here = false;
    if (counts_file(fd) && fault("fsync", true, &is_here)) {
        return -1;
    }
    int result = (int)syscall(SYS_fsync, fd);
    die_after(is_here);
    return result;
}

static int move(const char *call, const char *from, const char *to, unsigned flags)
{
    bool is_here = false;
    if ((is_of_a_save(from) || is_of_a_save(to)) && fault(call, false, &is_here)) {
        return -1;
    }
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
    die_after(is_here);
    return result;
}

int rename(const char *from, const char *to)
{
    return move("rename", from, to, 0);
}

/* Of two folders: kiln's are both the current one. */
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (from_folder != AT_FDCWD || to_folder != AT_FDCWD) {
        errno = EINVAL;
        return -1;
    }
    return move("renameat2", from, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    bool is_here = false;
    if (is_of_a_save(path) && fault("mkdir", true, &is_here)) {
        return -1;
    }
    int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    die_after(is_here);
    return result;
}

int remove(const char *path)
{
    bool is_here = false;
    if (is_of_a_save(path) && fault("remove", false, &is_here)) {
        return -1;
    }
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (result != 0 && (errno == EISDIR || errno == EPERM)) {
        result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
    }
    die_after(is_here);
    return result;
}
