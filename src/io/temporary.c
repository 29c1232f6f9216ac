#define _GNU_SOURCE
#include "io/temporary.h"

#include "core/entropy.h"
#include "core/log.h"
#include "io/file.h"
#include "io/file_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_KEPT_BYTES = 100, DIGITS = 16, MOST_TRIES = 100 };

static const char TEMPORARY[] = ".tmp", ASIDE[] = ".old", MARK[] = ".kiln-";

/* Bytes of `path` before its last name: "" or "directory/". */
static int directory_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (int)(slash + 1 - path);
}

static struct status new_name(struct temporary *t, const char *final)
{
    uint64_t random;
    FAIL_IF(!entropy_draw(&random, sizeof random), STATUS_IO, "cannot choose a temporary name beside %s: %s",
            final, strerror(errno));
    int directory = directory_bytes(final);
    FAIL_IF(snprintf(t->path, sizeof t->path, "%.*s.%.*s%s%016" PRIx64 "%s", directory, final,
                     NAME_KEPT_BYTES, final + directory, MARK, random, TEMPORARY) >= (int)sizeof t->path,
            STATUS_USAGE, "the path %.60s... is longer than %d bytes", final, FILE_PATH_BYTES - 1);
    return status_ok();
}

/* Locks what was just created; false if a clean-up removed it first.  A file system without locks has no
 * clean-up either. */
static bool keep(const struct temporary *t)
{
    return (file_lock_try(t->fd) || errno != EWOULDBLOCK) && file_is_open_as(t->fd, t->path);
}

/* EEXIST means that another name must be tried: this one is taken, or a clean-up removed it at once. */
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
        FAIL_IF(t->fd < 0 && errno == ENOENT, STATUS_IO,
                "cannot write %s: its directory does not exist; make it first", final);
        FAIL_IF(t->fd < 0 && errno != EEXIST, STATUS_IO, "cannot create a temporary name beside %s: %s",
                final, strerror(errno));
        temporary_close(t);
    }
    return status_error(
        STATUS_IO, "cannot keep a temporary file beside %s: another program removes each at once", final);
}

struct status temporary_create_file(struct temporary *t, const char *final)
{
    return create_one(t, final, false);
}

struct status temporary_create_directory(struct temporary *t, const char *final)
{
    return create_one(t, final, true);
}

/* ---- putting a directory in its place ---- */

static struct status cannot_rename(const char *from, const char *to)
{
    return status_error(STATUS_IO, "cannot rename %s to %s: %s", from, to, strerror(errno));
}

static void remove_or_warn(const char *path)
{
    struct status s = file_remove_tree(path);
    if (failed(s)) {
        log_warning("%s", s.message);
    }
}

/* The name of `final` for the instant between two renames: the temporary's name with another suffix. */
static void aside_of(char aside[TEMPORARY_PATH_BYTES], const struct temporary *t)
{
    snprintf(aside, TEMPORARY_PATH_BYTES, "%.*s%s", (int)(strlen(t->path) - strlen(TEMPORARY)), t->path,
             ASIDE);
}

/* Replaces without an atomic exchange.  The older directory is locked meanwhile, so that no clean-up
 * interferes. */
static struct status replace_in_two(const struct temporary *t, const char *final, const char *aside)
{
    int older = open(final, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct status s = status_ok();
    FAIL_IF(older < 0, STATUS_IO, "cannot open %s to replace it: %s", final, strerror(errno));
    (void)file_lock_try(older);
    if (rename(final, aside) != 0) {
        s = cannot_rename(final, aside);
    } else if (rename(t->path, final) != 0) {
        s = cannot_rename(t->path, final);
        if (rename(aside, final) != 0) {
            log_warning("%s is now called %s: rename it", final, aside);
        }
    }
    close(older);
    return s;
}

/* Leaves the older directory under the name `older`, which is "" if there was none. */
static struct status rename_over(const struct temporary *t, const char *final,
                                 char older[TEMPORARY_PATH_BYTES])
{
    *older = '\0';
    if (!file_exists(final)) {
        return rename(t->path, final) == 0 ? status_ok() : cannot_rename(t->path, final);
    }
    if (renameat2(AT_FDCWD, t->path, AT_FDCWD, final, RENAME_EXCHANGE) == 0) {
        memcpy(older, t->path, TEMPORARY_PATH_BYTES);
        return status_ok();
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return cannot_rename(t->path, final);
    }
    aside_of(older, t);
    return replace_in_two(t, final, older);
}

static void undo(const struct temporary *t, const char *final, const char *older)
{
    bool undone = strcmp(older, t->path) == 0
                      ? renameat2(AT_FDCWD, t->path, AT_FDCWD, final, RENAME_EXCHANGE) == 0
                      : rename(final, t->path) == 0 && (*older == '\0' || rename(older, final) == 0);
    if (!undone) {
        log_warning("%s", cannot_rename(final, t->path).message);
    }
}

struct status temporary_put_directory(struct temporary *t, const char *final)
{
    char parent[FILE_PATH_BYTES], older[TEMPORARY_PATH_BYTES];
    TRY(rename_over(t, final, older));
    file_parent(parent, final);
    struct status s = file_sync_directory(parent);
    if (failed(s)) {
        undo(t, final, older);
        return s;
    }
    if (*older != '\0') {
        remove_or_warn(older);
    }
    temporary_close(t);
    return status_ok();
}

struct status temporary_remove_directory(const char *path)
{
    char parent[FILE_PATH_BYTES];
    struct temporary t;
    TRY(new_name(&t, path));
    if (rename(path, t.path) != 0) {
        return cannot_rename(path, t.path);
    }
    file_parent(parent, path);
    TRY(file_sync_directory(parent));
    return file_remove_tree(t.path);
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
    if (t->fd >= 0) {
        remove_or_warn(t->path);
    }
    temporary_close(t);
}

/* ---- what dead runs left ---- */

/* Whether `name`, from its MARK on, has the form of a temporary's. */
static bool is_end(const char *name, const char *end)
{
    size_t n = sizeof MARK - 1;
    return strncmp(name, MARK, n) == 0 && strspn(name + n, "0123456789abcdef") == DIGITS &&
           strcmp(name + n + DIGITS, end) == 0;
}

bool temporary_is_name(const char *name)
{
    size_t n = strlen(name), end = sizeof MARK - 1 + DIGITS + sizeof TEMPORARY - 1;
    return name[0] == '.' && n > end && is_end(name + n - end, TEMPORARY);
}

/* Whether `name` is that of a temporary for `final`, with this suffix. */
static bool is_left_name(const char *name, const char *final, const char *end)
{
    size_t n = strnlen(final, NAME_KEPT_BYTES);
    return name[0] == '.' && strncmp(name + 1, final, n) == 0 && is_end(name + 1 + n, end);
}

/* Opens and locks it; -1 if its process is alive, or may be. */
static int lock_left(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || info.st_uid != geteuid() ||
        (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
        return -1;
    }
    int how =
        S_ISDIR(info.st_mode) ? O_RDONLY | O_DIRECTORY : O_RDWR; /* NFS locks what is open for writing */
    int fd = open(path, how | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (!file_lock_try(fd)) {
        if (errno != EWOULDBLOCK) {
            log_warning("a run that died may have left %s, but kiln cannot lock it: %s", path,
                        strerror(errno));
        }
        close(fd);
        return -1;
    }
    return fd;
}

/* Puts back a directory that exists under no other name. */
static void put_back(const char *path, const char *final)
{
    if (strlen(final + directory_bytes(final)) >
        NAME_KEPT_BYTES) { /* it could belong to another name with the same beginning */
        log_warning("a run that died moved %s aside: rename it", path);
    } else if (rename(path, final) != 0) {
        log_warning("%s", cannot_rename(path, final).message);
    } else {
        log_info("put back %s, which a run that died had moved aside", final);
    }
}

static bool clean_one(const char *path, const char *final, bool is_aside, void *context)
{
    int fd = lock_left(path);
    (void)context;
    if (fd < 0) {
        return false;
    }
    if (is_aside && !file_exists(final)) {
        put_back(path, final);
    } else if (file_is_open_as(fd, path)) {
        log_info("removing %s, left by a run that died", path);
        remove_or_warn(path);
    }
    close(fd);
    return false;
}

/* Calls visit(path, final, is_aside) for each temporary next to `final`, until it returns true. */
static bool visit_left(const char *final, bool (*visit)(const char *, const char *, bool, void *),
                       void *context)
{
    char parent[FILE_PATH_BYTES], path[FILE_PATH_BYTES + NAME_MAX + 1];
    int directory = directory_bytes(final);
    bool done = false;
    file_parent(parent, final);
    DIR *dir = opendir(parent);
    if (dir == NULL) {
        return false; /* writing there will give the error */
    }
    for (const struct dirent *e; !done && (e = readdir(dir)) != NULL;) {
        bool is_aside = is_left_name(e->d_name, final + directory, ASIDE);
        if (is_aside || is_left_name(e->d_name, final + directory, TEMPORARY)) {
            snprintf(path, sizeof path, "%.*s%s", directory, final, e->d_name);
            done = visit(path, final, is_aside, context);
        }
    }
    closedir(dir);
    return done;
}

void temporary_clean(const char *final)
{
    visit_left(final, clean_one, NULL);
}

static bool is_aside_of(const char *path, const char *final, bool is_aside, void *context)
{
    if (is_aside && !file_exists(final)) {
        snprintf(context, TEMPORARY_PATH_BYTES, "%s", path);
        return true;
    }
    return false;
}

bool temporary_find_aside(char aside[TEMPORARY_PATH_BYTES], const char *final)
{
    return visit_left(final, is_aside_of, aside);
}
