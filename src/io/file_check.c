/* file_check: finds out whether a path can be written, by writing there, before hours of work rely on it. */
#define _GNU_SOURCE
#include "io/file.h"
#include "io/temporary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct status check_space(const char *path, const char *directory, uint64_t bytes_wanted)
{
    uint64_t available = file_free_bytes(directory);
    return available >= bytes_wanted
               ? status_ok()
               : status_error(STATUS_IO,
                              "writing %s needs %" PRIu64 " bytes, but its file system has only %" PRIu64
                              " free; free some, or choose another place",
                              path, bytes_wanted, available);
}

/* Writes one byte, since a full disk still creates empty files. */
static struct status write_probe(const char *final)
{
    struct temporary t;
    temporary_clean(final);
    TRY(temporary_create_file(&t, final));
    struct status s = status_ok();
    if (write(t.fd, "", 1) != 1) {
        s = status_error(STATUS_IO, "cannot write in the directory of %s: %s", final, strerror(errno));
    }
    temporary_remove(&t);
    return s;
}

/* Checks what already exists at the path. */
static struct status check_existing(const char *path, mode_t mode)
{
    FAIL_IF(S_ISDIR(mode), STATUS_USAGE,
            "%s is a directory, but kiln would write a file there: choose another name", path);
    FAIL_IF(!S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISCHR(mode), STATUS_USAGE,
            "%s is neither a file nor a pipe, so kiln does not write to it", path);
    return S_ISREG(mode) || access(path, W_OK) == 0
               ? status_ok()
               : status_error(STATUS_IO, "cannot write to %s: %s", path, strerror(errno));
}

struct status file_check_output(const char *path, uint64_t bytes_wanted)
{
    struct stat info;
    char target[FILE_PATH_BYTES], parent[FILE_PATH_BYTES];
    bool in_place;
    TRY(file_find_target(target, path, &in_place));
    if (stat(target, &info) == 0) {
        TRY(check_existing(target, info.st_mode));
    }
    if (in_place) {
        return status_ok();
    }
    TRY(write_probe(target));
    file_parent(parent, target);
    return check_space(path, parent, bytes_wanted);
}

/* Whether it is "/", under whatever name. */
static bool is_root(const char *path)
{
    struct stat root, info;
    return stat("/", &root) == 0 && stat(path, &info) == 0 && root.st_ino == info.st_ino &&
           root.st_dev == info.st_dev;
}

/* Removes the directories that were made below the first `kept` bytes of `path`, the deepest first, as long
 * as they are empty. */
static void remove_made(const char *path, size_t kept)
{
    char part[FILE_PATH_BYTES];
    snprintf(part, sizeof part, "%s", path);
    for (size_t n = strlen(part); n > kept && (rmdir(part) == 0 || errno == ENOENT);) {
        while (n > kept && part[n - 1] == '/') {
            n--;
        }
        while (n > kept && part[n - 1] != '/') {
            n--;
        }
        part[n] = '\0';
    }
}

struct status file_check_directory_path(const char *path, size_t longest_suffix)
{
    FAIL_IF(*path == '\0', STATUS_USAGE, "the path of the output directory is empty");
    FAIL_IF(is_root(path), STATUS_USAGE,
            "%s is the root of the file system: give the output a directory of its own", path);
    FAIL_IF(file_exists(path) && !file_is_directory(path), STATUS_USAGE, "%s exists and is not a directory",
            path);
    FAIL_IF(strlen(path) + longest_suffix >= FILE_PATH_BYTES, STATUS_USAGE,
            "the path %.60s... has %zu bytes; the limit is %zu, so that file names fit after it", path,
            strlen(path), FILE_PATH_BYTES - 1 - longest_suffix);
    return status_ok();
}

struct status file_check_output_directory(const char *path, size_t longest_suffix, uint64_t bytes_wanted)
{
    char inside[FILE_PATH_BYTES + 8], existing[FILE_PATH_BYTES];
    TRY(file_check_directory_path(path, longest_suffix));
    TRY(file_existing_part(existing, path));
    snprintf(inside, sizeof inside, "%s/probe", path);
    struct status s = file_make_directories(path);
    if (!failed(s)) {
        s = write_probe(inside);
    }
    if (!failed(s)) {
        s = check_space(path, path, bytes_wanted);
    }
    remove_made(path, strlen(existing));
    return s;
}
