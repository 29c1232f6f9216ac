/* file_writer: the writing half of io/file.h. */
#define _GNU_SOURCE
#include "core/hash.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t BUFFER_BYTES = 1 << 20;

/* ---- where ---- */

static struct status too_long(const char *path)
{
    return status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", path, FILE_PATH_BYTES - 1);
}

/* Replaces a link in `path` by what it leads to; *is_link is false if it was none. */
static struct status follow_once(char path[FILE_PATH_BYTES], bool *is_link)
{
    char to[FILE_PATH_BYTES], joined[2 * FILE_PATH_BYTES];
    ssize_t n = readlink(path, to, sizeof to);
    *is_link = n >= 0;
    if (n < 0) {
        return status_ok(); /* not a link, or missing: opening it gives the error */
    }
    const char *slash = strrchr(path, '/');
    int directory = to[0] == '/' || slash == NULL ? 0 : (int)(slash + 1 - path);
    snprintf(joined, sizeof joined, "%.*s%.*s", directory, path, (int)n, to);
    size_t bytes = strlen(joined) + 1;
    if (n == sizeof to || bytes > FILE_PATH_BYTES) {
        return too_long(path);
    }
    memcpy(path, joined, bytes);
    return status_ok();
}

struct status file_follow_links(char path[FILE_PATH_BYTES])
{
    enum { MOST_LINKS = 40 }; /* the kernel's MAXSYMLINKS */
    char given[64];
    bool is_link = true;
    snprintf(given, sizeof given, "%s", path);
    for (int i = 0; is_link; i++) {
        FAIL_IF(i > MOST_LINKS, STATUS_USAGE, "%s leads through more than %d symbolic links", given,
                MOST_LINKS);
        TRY(follow_once(path, &is_link));
    }
    return status_ok();
}

static struct status check_name(const char *path)
{
    char parent[FILE_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    file_parent(parent, path);
    long most = pathconf(parent, _PC_NAME_MAX);
    most = most > 0 ? most : NAME_MAX;
    return strlen(name) <= (size_t)most
               ? status_ok()
               : status_error(STATUS_USAGE, "the file name %.60s... has %zu bytes; the limit is %ld", name,
                              strlen(name), most);
}

struct status file_find_target(char target[FILE_PATH_BYTES], const char *path, bool *in_place)
{
    struct stat there, found;
    size_t n = strlen(path);
    *in_place = false;
    FAIL_IF(n == 0, STATUS_USAGE, "the path of the output file is empty");
    if (n >= FILE_PATH_BYTES) {
        return too_long(path);
    }
    memcpy(target, path, n + 1);
    bool exists = stat(path, &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) {
        *in_place = true;
        return status_ok();
    }
    TRY(file_follow_links(target));
    FAIL_IF(target[strlen(target) - 1] == '/', STATUS_USAGE,
            "%s names a directory, but kiln would write a file there: choose another name", path);
    if (exists &&
        (lstat(target, &found) != 0 || found.st_ino != there.st_ino || found.st_dev != there.st_dev)) {
        *in_place = true; /* a link in /proc to a file without a name */
        memcpy(target, path, n + 1);
    }
    return *in_place ? status_ok() : check_name(target);
}

/* Never waits for a pipe's reader: a pipe without one is refused. */
static struct status open_in_place(int *fd, const char *path)
{
    struct stat info;
    *fd = -1;
    FAIL_IF(stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) &&
                !S_ISCHR(info.st_mode),
            STATUS_USAGE, "%s is %s, so kiln does not write to it", path,
            S_ISDIR(info.st_mode) ? "a directory" : "neither a file nor a pipe");
    *fd = open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    FAIL_IF(*fd < 0 && errno == ENXIO, STATUS_IO, "cannot write to the pipe %s: no process reads it", path);
    int flags = *fd < 0 ? -1 : fcntl(*fd, F_GETFL);
    if (flags < 0 || fcntl(*fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
        struct status s = status_error(STATUS_IO, "cannot write to %s: %s", path, strerror(errno));
        if (*fd >= 0) {
            close(*fd);
        }
        return s;
    }
    return status_ok();
}

/* ---- complete files ---- */

struct status file_writer_open(struct file_writer *w, const char *path)
{
    bool in_place;
    *w = (struct file_writer){.fd = -1, .temporary.fd = -1};
    TRY(file_find_target(w->path, path, &in_place));
    if (!in_place) {
        temporary_clean(w->path);
    }
    unsigned char *buffer = malloc(BUFFER_BYTES);
    FAIL_IF(buffer == NULL, STATUS_MEMORY, "out of memory for the write buffer of %s", path);
    struct status s =
        in_place ? open_in_place(&w->fd, w->path) : temporary_create_file(&w->temporary, w->path);
    if (failed(s)) {
        free(buffer);
        return s;
    }
    w->fd = in_place ? w->fd : w->temporary.fd;
    w->buffer = buffer;
    return status_ok();
}

static void write_out(struct file_writer *w, const unsigned char *p, size_t n)
{
    while (n > 0 && !failed(w->status)) {
        ssize_t written = write(w->fd, p, n);
        if (written < 0 && errno != EINTR) {
            w->status = status_error(STATUS_IO, "writing %s failed after %llu bytes: %s", w->path,
                                     (unsigned long long)w->n_bytes, strerror(errno));
        } else if (written > 0) {
            p += written;
            n -= (size_t)written;
        }
    }
}

void file_writer_put(struct file_writer *w, const void *bytes, size_t n)
{
    if (failed(w->status)) {
        return;
    }
    w->crc = hash_crc32c(w->crc, bytes, n);
    w->n_bytes += n;
    if (n > BUFFER_BYTES - w->buffered) {
        write_out(w, w->buffer, w->buffered);
        w->buffered = 0; /* NOLINT(clang-analyzer-unix.Malloc): the buffer is the writer's until its commit */
    }
    if (n > BUFFER_BYTES) {
        write_out(w, bytes, n);
    } else if (n > 0) {
        memcpy(w->buffer + w->buffered, bytes, n);
        w->buffered += n;
    }
}

static bool is_in_place(const struct file_writer *w)
{
    return w->temporary.fd < 0;
}

/* fsync is not retried: after a failure the kernel may have dropped the pages (Rebello et al., ATC 2020).  A
 * pipe or a device has none. */
static struct status write_and_sync(struct file_writer *w)
{
    write_out(w, w->buffer, w->buffered);
    if (!failed(w->status) && fsync(w->fd) != 0 && !(is_in_place(w) && errno == EINVAL)) {
        w->status = status_error(STATUS_IO, "fsync of %s failed: %s", w->path, strerror(errno));
    }
    return w->status;
}

/* The descriptor holds the temporary's lock, so it is closed after the rename: until then no clean-up takes
 * the file for a dead run's. fsync has reported any error that close could. */
static struct status put_in_place(struct file_writer *w)
{
    FAIL_IF(rename(w->temporary.path, w->path) != 0, STATUS_IO, "cannot rename %s to %s: %s",
            w->temporary.path, w->path, strerror(errno));
    temporary_close(&w->temporary);
    w->fd = -1;
    char parent[FILE_PATH_BYTES];
    file_parent(parent, w->path);
    return file_sync_directory(parent);
}

struct status file_writer_commit(struct file_writer *w)
{
    struct status s = write_and_sync(w);
    if (!failed(s) && !is_in_place(w)) {
        s = put_in_place(w);
    }
    file_writer_abandon(w);
    return s;
}

void file_writer_abandon(struct file_writer *w)
{
    if (w->buffer == NULL) {
        return;
    }
    if (is_in_place(w) && w->fd >= 0) {
        close(w->fd);
    }
    temporary_remove(&w->temporary);
    free(w->buffer);
    w->buffer = NULL;
    w->fd = -1;
}

struct status file_write_atomic(const char *path, const void *bytes, size_t n)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    file_writer_put(&w, bytes, n);
    return file_writer_commit(&w);
}

struct status file_write_at(int fd, const char *path, const void *bytes, size_t n, int64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t wrote = pwrite(fd, (const char *)bytes + done, n - done, (off_t)at + (off_t)done);
        FAIL_IF(wrote < 0 && errno != EINTR, STATUS_IO, "writing %s failed: %s", path, strerror(errno));
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return status_ok();
}

/* ---- lines ---- */

struct status file_lines_open(FILE **file, const char *path, bool append)
{
    char target[FILE_PATH_BYTES];
    bool in_place;
    int fd;
    *file = NULL;
    TRY(file_find_target(target, path, &in_place));
    if (in_place) {
        TRY(open_in_place(&fd, target));
    } else {
        fd = open(target, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | (append ? O_APPEND : O_TRUNC), 0666);
    }
    *file = fd < 0 ? NULL : fdopen(fd, in_place ? "w" : "a+");
    if (*file == NULL) {
        struct status s = status_error(STATUS_IO, "cannot write to %s: %s", target, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return s;
    }
    bool torn = append && !in_place && fseek(*file, -1, SEEK_END) == 0 && getc(*file) != '\n';
    fseek(*file, 0, SEEK_END);
    if (torn) {
        putc('\n', *file);
    }
    return status_ok();
}
