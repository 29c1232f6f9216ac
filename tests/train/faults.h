/* faults: the disk's system calls, made to fail or to be the last thing a process did.
 *
 * A test program that includes this file defines open, write, fsync, rename, renameat2, mkdir and remove itself, and the
 * linker prefers these to the C library's for all of kiln.  Every call is a numbered point.  At one point a
 * child process dies, with or without the page cache, or the call fails.  fsync never reaches the disk: what
 * it would have saved is tracked instead, and a power cut takes back everything else: data that was not
 * synced is torn in half, and names in a directory that was not synced are undone. */
#ifndef KILN_TESTS_FAULTS_H
#define KILN_TESTS_FAULTS_H

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum fault_kind {
    FAULT_NONE,
    FAULT_KILL_BEFORE, /* the process dies instead of the call */
    FAULT_KILL_AFTER,  /* right after it; a write is torn in half */
    FAULT_POWER_CUT,   /* as KILL_AFTER of the call before, and unsynced data and names are lost */
    FAULT_ERROR,       /* this call fails */
    FAULT_FULL,        /* from here on all calls fail that need room on the disk */
};

static const char *const fault_names[] = {"none",      "kill before", "kill after",
                                          "power cut", "error",       "disk full"};

enum { FAULT_MAX_RECORDS = 256, FAULT_NAME_BYTES = 256 };

static struct {
    enum fault_kind kind;
    int point;         /* the call that it happens at, from 1 */
    int error;         /* errno of the errors */
    int *n_points;     /* calls so far; shared with the child */
    char *failed_call; /* [FAULT_NAME_BYTES] which call that was; shared likewise */
    struct {
        int fd; /* our own, of a file that was written or of the directory of a rename */
        ino_t inode;
        bool synced;
        unsigned rename_flags;
        char from[FAULT_NAME_BYTES]; /* of a rename; empty for a file */
        char to[FAULT_NAME_BYTES];
    } records[FAULT_MAX_RECORDS];
    int n_records;
    bool no_exchange; /* the file system cannot */
} faults;

static inline ino_t fault_inode(int fd)
{
    struct stat info;
    EXPECT(fstat(fd, &info) == 0, "fstat");
    return info.st_ino;
}

static inline void fault_record(int fd, const char *from, const char *to)
{
    EXPECT(fd >= 0 && faults.n_records < FAULT_MAX_RECORDS, "record %d", faults.n_records);
    int k = faults.n_records++;
    faults.records[k].fd = fd;
    faults.records[k].inode = fault_inode(fd);
    faults.records[k].synced = false;
    snprintf(faults.records[k].from, FAULT_NAME_BYTES, "%s", from);
    snprintf(faults.records[k].to, FAULT_NAME_BYTES, "%s", to);
}

static inline void fault_mark(int fd, bool synced)
{
    ino_t inode = fault_inode(fd);
    for (int k = 0; k < faults.n_records; k++) {
        if (faults.records[k].inode == inode) {
            faults.records[k].synced = synced;
        }
    }
}

static inline void fault_die(void)
{
    for (int k = faults.n_records - 1; k >= 0 && faults.kind == FAULT_POWER_CUT; k--) {
        int fd = faults.records[k].fd;
        struct stat info;
        if (faults.records[k].synced) {
            continue;
        }
        if (*faults.records[k].from != '\0') {
            syscall(SYS_renameat2, fd, faults.records[k].to, fd, faults.records[k].from,
                    faults.records[k].rename_flags);
        } else if (fstat(fd, &info) == 0) {
            EXPECT(ftruncate(fd, info.st_size / 2) == 0, "ftruncate");
        }
    }
    raise(SIGKILL);
}

/* Counts a call; true if it must fail. */
static inline bool fault_here(const char *call, bool needs_room)
{
    if (faults.n_points == NULL) {
        return false;
    }
    int n = ++*faults.n_points;
    if (n == faults.point) {
        snprintf(faults.failed_call, FAULT_NAME_BYTES, "%s", call);
    }
    if (n == faults.point && (faults.kind == FAULT_KILL_BEFORE || faults.kind == FAULT_POWER_CUT)) {
        fault_die();
    }
    errno = faults.error;
    return (n == faults.point && faults.kind == FAULT_ERROR) ||
           (n >= faults.point && faults.kind == FAULT_FULL && needs_room);
}

static inline void fault_after(void)
{
    if (faults.n_points != NULL && *faults.n_points == faults.point && faults.kind == FAULT_KILL_AFTER) {
        fault_die();
    }
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    bool creates = (flags & O_CREAT) != 0;
    if (fault_here("open", creates)) {
        return -1;
    }
    int fd = openat(AT_FDCWD, path, flags, mode);
    if (fd >= 0 && creates && faults.kind == FAULT_POWER_CUT) {
        fault_record(dup(fd), "", "");
    }
    fault_after();
    return fd;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (fault_here("write", true)) {
        return -1;
    }
    bool torn =
        faults.n_points != NULL && *faults.n_points == faults.point && faults.kind == FAULT_KILL_AFTER;
    struct iovec part = {(void *)bytes, torn ? n / 2 : n};
    ssize_t written = writev(fd, &part, 1);
    fault_mark(fd, false);
    fault_after();
    return written;
}

int fsync(int fd)
{
    if (fault_here("fsync", true)) {
        return -1;
    }
    fault_mark(fd, true);
    fault_after();
    return 0;
}

/* Both names are in one directory, as all of kiln's renames are. */
static inline int fault_rename(const char *call, const char *from, const char *to, unsigned flags)
{
    if (fault_here(call, false)) {
        return -1;
    }
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
    const char *base = strrchr(from, '/');
    if (result == 0 && faults.kind == FAULT_POWER_CUT) {
        char parent[1024];
        snprintf(parent, sizeof parent, "%.*s", (int)(base - from), from);
        fault_record(openat(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY), base + 1, strrchr(to, '/') + 1);
        faults.records[faults.n_records - 1].rename_flags = flags;
    }
    fault_after();
    return result;
}

int rename(const char *from, const char *to)
{
    return fault_rename("rename", from, to, 0);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags)
{
    EXPECT(from_directory == AT_FDCWD && to_directory == AT_FDCWD, "a rename below a directory");
    if (faults.no_exchange) {
        errno = EINVAL;
        return -1;
    }
    return fault_rename("renameat2", from, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    /* Parents that exist are no points: they change nothing. */
    struct stat info;
    if (fstatat(AT_FDCWD, path, &info, 0) == 0) {
        errno = EEXIST;
        return -1;
    }
    if (fault_here("mkdir", true)) {
        return -1;
    }
    int result = mkdirat(AT_FDCWD, path, mode);
    fault_after();
    return result;
}

int remove(const char *path)
{
    if (fault_here("remove", false)) {
        return -1;
    }
    int result = unlinkat(AT_FDCWD, path, 0);
    if (result != 0 && (errno == EISDIR || errno == EPERM)) {
        result = unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
    }
    fault_after();
    return result;
}

/* What became of a run with a fault. */
struct fault_outcome {
    bool killed;
    int code;                    /* else: what the run returned */
    int n_points;                /* calls that it made */
    char call[FAULT_NAME_BYTES]; /* the one at the point; "" if it was not reached */
};

/* Runs run(context) in a child process with a fault at `point`. */
static inline struct fault_outcome fault_run(enum fault_kind kind, int point, int error, int (*run)(void *),
                                             void *context)
{
    struct fault_outcome outcome = {0};
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED, "mmap");
    pid_t child = fork();
    EXPECT(child >= 0, "fork");
    if (child == 0) {
        faults.kind = kind;
        faults.point = point;
        faults.error = error;
        faults.n_points = (int *)(void *)shared;
        faults.failed_call = shared + 64;
        _exit(run(context));
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child, "waitpid");
    outcome.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT(outcome.killed || WIFEXITED(status), "the run ended with signal %d", WTERMSIG(status));
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    memcpy(&outcome.n_points, shared, sizeof outcome.n_points);
    memcpy(outcome.call, shared + 64, FAULT_NAME_BYTES);
    munmap(shared, 4096);
    return outcome;
}

#endif
