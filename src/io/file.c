#define _GNU_SOURCE
#include "io/file.h"

#include "core/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const size_t BUFFER_BYTES = 1 << 20;

struct status file_map_open(struct file_map *m, const char *path)
{
    *m = (struct file_map){0};
    int fd = open(path,
                  O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer is refused, not waited for */
    if (fd < 0) {
        return status_error(STATUS_DATA, "cannot open %s: %s", path, strerror(errno));
    }
    struct status s = status_ok();
    struct stat info;
    if (fstat(fd, &info) != 0) {
        s = status_error(STATUS_IO, "cannot stat %s: %s", path, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        s = status_error(STATUS_DATA, "%s is not a regular file", path);
    } else if (info.st_size > 0) {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            s = status_error(STATUS_IO, "cannot map %s (%lld bytes): %s", path, (long long)info.st_size,
                             strerror(errno));
        } else {
            m->data = p;
            m->n = (size_t)info.st_size;
        }
    }
    close(fd);
    return s;
}

void file_map_close(struct file_map *m)
{
    if (m->data != NULL) {
        munmap((void *)m->data, m->n);
    }
    *m = (struct file_map){0};
}

struct status file_writer_open(struct file_writer *w, const char *path)
{
    *w = (struct file_writer){.fd = -1};
    if ((size_t)snprintf(w->path, sizeof w->path, "%s", path) >= sizeof w->path) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %zu bytes", path,
                            sizeof w->path - 1);
    }
    snprintf(w->temporary, sizeof w->temporary, "%s.tmp.%ld", path, (long)getpid());
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->fd < 0) {
        return status_error(STATUS_IO, "cannot create %s: %s", w->temporary, strerror(errno));
    }
    w->buffer = malloc(BUFFER_BYTES);
    if (w->buffer == NULL) {
        file_writer_abandon(w);
        return status_error(STATUS_MEMORY, "out of memory for the write buffer of %s", path);
    }
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

/* fsync is not retried: after a failure the kernel may have dropped the pages (Rebello et al., ATC 2020). */
static struct status sync_and_close(struct file_writer *w)
{
    write_out(w, w->buffer, w->buffered);
    if (!failed(w->status) && fsync(w->fd) != 0) {
        w->status = status_error(STATUS_IO, "fsync of %s failed: %s", w->path, strerror(errno));
    }
    if (close(w->fd) != 0 && !failed(w->status)) {
        w->status = status_error(STATUS_IO, "closing %s failed: %s", w->path, strerror(errno));
    }
    w->fd = -1;
    return w->status;
}

static struct status sync_parent(const char *path)
{
    char parent[1024];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        return file_sync_directory(".");
    }
    slash[slash == parent ? 1 : 0] = '\0';
    return file_sync_directory(parent);
}

struct status file_writer_commit(struct file_writer *w)
{
    struct status s = sync_and_close(w);
    if (!failed(s) && rename(w->temporary, w->path) != 0) {
        s = status_error(STATUS_IO, "cannot rename %s to %s: %s", w->temporary, w->path, strerror(errno));
    }
    if (failed(s)) {
        unlink(w->temporary);
    }
    free(w->buffer);
    w->buffer = NULL;
    return failed(s) ? s : sync_parent(w->path);
}

void file_writer_abandon(struct file_writer *w)
{
    if (w->fd > 0) {
        close(w->fd);
        unlink(w->temporary);
    }
    free(w->buffer);
    *w = (struct file_writer){.fd = -1};
}

struct status file_write_atomic(const char *path, const void *bytes, size_t n)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    file_writer_put(&w, bytes, n);
    return file_writer_commit(&w);
}

struct status file_lines_open(FILE **file, const char *path, bool append)
{
    *file = fopen(path, append ? "a+" : "w");
    if (*file == NULL) {
        return status_error(STATUS_IO, "cannot write to %s: %s", path, strerror(errno));
    }
    bool torn = append && fseek(*file, -1, SEEK_END) == 0 && getc(*file) != '\n';
    fseek(*file, 0, SEEK_END);
    if (torn) {
        putc('\n', *file);
    }
    return status_ok();
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

struct status file_make_directories(const char *path)
{
    char partial[1024];
    if ((size_t)snprintf(partial, sizeof partial, "%s", path) >= sizeof partial) {
        return status_error(STATUS_USAGE, "the path %.60s... is longer than %zu bytes", path,
                            sizeof partial - 1);
    }
    for (char *p = partial + 1; *partial != '\0'; p++) {
        bool last = *p == '\0';
        if (last || *p == '/') {
            *p = '\0';
            if (mkdir(partial, 0777) != 0 && !(errno == EEXIST && file_is_directory(partial))) {
                return status_error(STATUS_IO, "cannot create the directory %s: %s", partial,
                                    strerror(errno));
            }
            if (last) {
                break;
            }
            *p = '/';
        }
    }
    return status_ok();
}

struct status file_sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return status_error(STATUS_IO, "cannot open the directory %s: %s", path, strerror(errno));
    }
    struct status s = status_ok();
    if (fsync(fd) != 0) {
        s = status_error(STATUS_IO, "fsync of the directory %s failed: %s", path, strerror(errno));
    }
    close(fd);
    return s;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *position)
{
    (void)info, (void)type, (void)position;
    return remove(path);
}

struct status file_remove_tree(const char *path)
{
    enum { OPEN_DIRECTORIES = 16 };
    if (nftw(path, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS) != 0) {
        return status_error(STATUS_IO, "cannot remove %s: %s", path, strerror(errno));
    }
    return status_ok();
}

uint64_t file_free_bytes(const char *path)
{
    struct statvfs fs;
    return statvfs(path, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

bool file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
