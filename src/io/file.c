#define _GNU_SOURCE
#include "io/file.h"

#include "core/hash.h"
#include "core/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct status file_make_path(char path[FILE_PATH_BYTES], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(path, FILE_PATH_BYTES, format, args);
    va_end(args);
    return n >= 0 && n < FILE_PATH_BYTES
               ? status_ok()
               : status_error(STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
                              FILE_PATH_BYTES - 1);
}

struct status file_map_open(struct file_map *m, const char *path)
{
    *m = (struct file_map){(const unsigned char *)"", 0, -1};
    int fd;
    size_t n;
    TRY(regular_file_open(&fd, &n, path));
    struct status s = status_ok();
    if (n > 0) {
        void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            s = status_error(errno == ENOMEM ? STATUS_MEMORY : STATUS_IO, "cannot map %s (%zu bytes): %s",
                             path, n, strerror(errno));
        } else {
            *m = (struct file_map){p, n, fd};
        }
    }
    if (m->n == 0) {
        close(fd);
    }
    return s;
}

struct status file_map_check(const struct file_map *m, const char *path)
{
    struct stat info;
    if (m->n == 0 || fstat(m->fd, &info) != 0 || (size_t)info.st_size >= m->n) {
        return status_ok();
    }
    return status_error(STATUS_IO, "%s was cut from %zu to %zu bytes while it was read", path, m->n,
                        (size_t)info.st_size);
}

void file_map_close(struct file_map *m)
{
    if (m->n > 0) {
        munmap((void *)m->data, m->n);
        close(m->fd);
    }
    *m = (struct file_map){0};
}

uint32_t file_map_sample(uint32_t crc, const struct file_map *m, int64_t n_files)
{
    enum { BLOCK_BYTES = 1 << 16, MOST_BLOCKS = 64 };
    uint64_t n_bytes = m->n;
    size_t n_blocks = n_files < MOST_BLOCKS ? MOST_BLOCKS / (size_t)n_files : 1;
    crc = hash_crc32c(crc, &n_bytes, sizeof n_bytes);
    if (m->n <= n_blocks * BLOCK_BYTES) {
        return hash_crc32c(crc, m->data, m->n);
    }
    for (size_t i = 0; i < n_blocks; i++) {
        double part = n_blocks == 1 ? 0.5 : (double)i / (double)(n_blocks - 1);
        crc = hash_crc32c(crc, m->data + (size_t)((double)(m->n - BLOCK_BYTES) * part), BLOCK_BYTES);
    }
    return crc;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_has_bytes(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0;
}

bool file_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

void file_parent(char parent[FILE_PATH_BYTES], const char *path)
{
    const char *slash = strrchr(path, '/');
    int n = slash == NULL || slash == path ? 1 : (int)(slash - path);
    snprintf(parent, FILE_PATH_BYTES, "%.*s", n, slash == NULL ? "." : path);
}

bool file_is_same(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

bool file_is_same_name(const char *a, const char *b)
{
    char above_a[FILE_PATH_BYTES], above_b[FILE_PATH_BYTES];
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    if (file_is_same(a, b) || strcmp(a, b) == 0) {
        return true;
    }
    file_parent(above_a, a);
    file_parent(above_b, b);
    return strcmp(slash_a == NULL ? a : slash_a + 1, slash_b == NULL ? b : slash_b + 1) == 0 &&
           file_is_same(above_a, above_b);
}

bool file_is_open_as(int fd, const char *path)
{
    struct stat there, here;
    return lstat(path, &there) == 0 && fstat(fd, &here) == 0 && there.st_ino == here.st_ino &&
           there.st_dev == here.st_dev;
}

struct status file_existing_part(char part[FILE_PATH_BYTES], const char *path)
{
    size_t n = strlen(path);
    FAIL_IF(n >= FILE_PATH_BYTES, STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
            FILE_PATH_BYTES - 1);
    memcpy(part, path, n + 1);
    while (n > 0 && !file_exists(part)) {
        while (n > 0 && part[n - 1] == '/') {
            n--;
        }
        while (n > 0 && part[n - 1] != '/') {
            n--;
        }
        part[n] = '\0';
    }
    return status_ok();
}

/* One pass over the names of a path; `partial` is the path as far as it got. */
static bool make_each(char partial[FILE_PATH_BYTES], const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 1; i <= n; i++) {
        if (i == n || path[i] == '/') {
            memcpy(partial, path, i);
            partial[i] = '\0';
            if (mkdir(partial, 0777) != 0 && !(errno == EEXIST && file_is_directory(partial))) {
                return false;
            }
        }
    }
    return true;
}

struct status file_make_directories(const char *path)
{
    enum {
        TRIES = 100
    }; /* a parent may vanish while we make its child: another run's file_check_output_directory removes it */
    char partial[FILE_PATH_BYTES];
    FAIL_IF(strlen(path) >= sizeof partial, STATUS_USAGE, "the path %.60s... is longer than %zu bytes", path,
            sizeof partial - 1);
    for (int i = 0; !make_each(partial, path); i++) {
        FAIL_IF((errno != ENOENT && errno != EEXIST) || i == TRIES, STATUS_IO,
                "cannot create the directory %s: %s", partial, strerror(errno));
    }
    return status_ok();
}

struct status file_make_parent(const char *path)
{
    char parent[FILE_PATH_BYTES];
    FAIL_IF(strlen(path) >= sizeof parent, STATUS_USAGE, "the path %.60s... is longer than %zu bytes", path,
            sizeof parent - 1);
    file_parent(parent, path);
    return file_make_directories(parent);
}

struct status file_sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FAIL_IF(fd < 0, STATUS_IO, "cannot open the directory %s: %s", path, strerror(errno));
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
    FAIL_IF(nftw(path, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS) != 0, STATUS_IO,
            "cannot remove %s: %s", path, strerror(errno));
    return status_ok();
}

uint64_t file_free_bytes(const char *path)
{
    struct statvfs fs;
    return statvfs(path, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}
