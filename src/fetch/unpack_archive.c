/* unpack_archive: fetch/unpack.h by libarchive, which is loaded when the first archive is unpacked. */
#define _GNU_SOURCE
#include "core/regular_file.h"
#include "core/shared_library.h"
#include "core/stop.h"
#include "fetch/unpack.h"
#include "io/byte_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Text compresses to a fifth, zeros to a thousandth: beyond this ratio it is an attack. */
static const int64_t MOST_RATIO = 100, ALWAYS_ALLOWED = 64 << 20;
enum { MOST_ENTRIES = 100000, BLOCK_BYTES = 1 << 20 };

static struct {
    bool is_open;
    struct archive *(*read_new)(void);
    int (*support_filter_gzip)(struct archive *a);
    int (*support_filter_bzip2)(struct archive *a);
    int (*support_format_zip)(struct archive *a);
    int (*support_format_tar)(struct archive *a);
    int (*support_format_raw)(struct archive *a);
    int (*read_open_fd)(struct archive *a, int fd, size_t block_bytes);
    int (*read_next_header)(struct archive *a, struct archive_entry **entry);
    la_ssize_t (*read_data)(struct archive *a, void *bytes, size_t n);
    int (*read_free)(struct archive *a);
    int (*filter_code)(struct archive *a, int i);
    const char *(*error_string)(struct archive *a);
    const char *(*entry_pathname)(struct archive_entry *entry);
    const char *(*entry_pathname_utf8)(struct archive_entry *entry);
    const char *(*entry_hardlink)(struct archive_entry *entry);
    unsigned (*entry_filetype)(struct archive_entry *entry);
    const char *(*version_string)(void);
} lib;

static struct status open_library(void)
{
    static const struct shared_symbol symbols[] = {
        {"archive_read_new", (void **)&lib.read_new},
        {"archive_read_support_filter_gzip", (void **)&lib.support_filter_gzip},
        {"archive_read_support_filter_bzip2", (void **)&lib.support_filter_bzip2},
        {"archive_read_support_format_zip", (void **)&lib.support_format_zip},
        {"archive_read_support_format_tar", (void **)&lib.support_format_tar},
        {"archive_read_support_format_raw", (void **)&lib.support_format_raw},
        {"archive_read_open_fd", (void **)&lib.read_open_fd},
        {"archive_read_next_header", (void **)&lib.read_next_header},
        {"archive_read_data", (void **)&lib.read_data},
        {"archive_read_free", (void **)&lib.read_free},
        {"archive_filter_code", (void **)&lib.filter_code},
        {"archive_error_string", (void **)&lib.error_string},
        {"archive_entry_pathname", (void **)&lib.entry_pathname},
        {"archive_entry_pathname_utf8", (void **)&lib.entry_pathname_utf8},
        {"archive_entry_hardlink", (void **)&lib.entry_hardlink},
        {"archive_entry_filetype", (void **)&lib.entry_filetype},
        {"archive_version_string", (void **)&lib.version_string},
        {0},
    };
    if (lib.is_open) {
        return status_ok();
    }
    TRY(shared_library_open(KILN_ARCHIVE_LIBRARY, "libarchive13", symbols));
    lib.is_open = true;
    return status_ok();
}

/* One archive being unpacked. */
struct unpacking {
    const char *path; /* path of the archive */
    uint64_t archive_bytes;
    struct archive *archive;
    unsigned char *block;        /* [BLOCK_BYTES] */
    int64_t most_bytes, n_bytes; /* the limit of the output, and the output so far */
    uint64_t free_bytes;         /* free bytes of the target's file system before unpacking */
};

static struct status damaged(const struct unpacking *u)
{
    const char *why = lib.error_string(u->archive);
    return status_error(STATUS_DATA, "%s is damaged, or its format does not match its suffix: %s", u->path,
                        why == NULL ? "it cannot be read" : why);
}

/* The next bytes of an entry, *n of them: 0 at its end. */
static struct status read_block(struct unpacking *u, size_t *n)
{
    la_ssize_t got = lib.read_data(u->archive, u->block, BLOCK_BYTES);
    *n = got > 0 ? (size_t)got : 0;
    if (got < 0) {
        return damaged(u);
    }
    u->n_bytes += got;
    FAIL_IF(u->n_bytes > u->most_bytes, STATUS_DATA,
            "%s unpacks to more than %lld bytes, %d times its size, so kiln does not unpack it", u->path,
            (long long)u->most_bytes, (int)MOST_RATIO);
    FAIL_IF((uint64_t)u->n_bytes > u->free_bytes, STATUS_IO,
            "%s unpacks to more than the %llu bytes that its file system has free; free some", u->path,
            (unsigned long long)u->free_bytes);
    return stop_requested()
               ? status_error(STATUS_PREEMPTED, "stopped by a signal while unpacking %s", u->path)
               : status_ok();
}

/* Reads all of a compressed or tar file, before what was unpacked gets its name: libarchive checks neither
 * gzip's CRC nor that a tar has its end, two blocks of zeros (POSIX.1-2017, pax, "ustar Interchange
 * Format"). */
static struct status check_stream(struct byte_stream *s, unsigned char *block, bool is_tar, const char *path)
{
    enum { TAR_END = 1024 };
    size_t n_zero = 0; /* at the end of what was read so far */
    for (size_t n = 1; n > 0;) {
        size_t zeros = 0;
        TRY(byte_stream_read(s, block, BLOCK_BYTES, &n));
        while (zeros < n && block[n - 1 - zeros] == 0) {
            zeros++;
        }
        n_zero = zeros == n ? n_zero + zeros : zeros;
    }
    FAIL_IF(s->at_gap || s->ends_early || s->n_damaged > 0, STATUS_DATA,
            "%s is damaged: its contents are incomplete, or its checksum is wrong", path);
    return !is_tar || n_zero >= TAR_END
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s is damaged: a tar file ends with %d zero bytes, so its end is missing",
                              path, TAR_END);
}

static struct status check_whole(const struct unpacking *u, enum unpack_kind kind)
{
    struct byte_stream s;
    size_t length = strlen(u->path);
    if (length > 4 && strcmp(u->path + length - 4, ".zip") ==
                          0) { /* files of a ZIP have checksums that libarchive compares */
        return status_ok();
    }
    byte_stream_init(&s);
    struct status status = byte_stream_open(&s, u->path, u->archive_bytes);
    s.quiet = true;
    status = failed(status) ? status : check_stream(&s, u->block, kind == UNPACK_DIRECTORY, u->path);
    byte_stream_close(&s);
    byte_stream_fini(&s);
    return status;
}

/* ---- one compressed file ---- */

static struct status unpack_file(struct unpacking *u, const char *target)
{
    struct archive_entry *entry;
    struct file_writer w;
    size_t n = 1;
    if (lib.read_next_header(u->archive, &entry) != ARCHIVE_OK) {
        return damaged(u);
    }
    int filter = lib.filter_code(u->archive, 0);
    FAIL_IF(filter != ARCHIVE_FILTER_GZIP && filter != ARCHIVE_FILTER_BZIP2, STATUS_DATA,
            "%s is not compressed, although its suffix says so", u->path);
    TRY(file_writer_open(&w, target));
    struct status s = status_ok();
    while (!failed(s) && n > 0 && !failed(w.status)) {
        s = read_block(u, &n);
        file_writer_put(&w, u->block, n);
    }
    s = failed(s) ? s : check_whole(u, UNPACK_FILE);
    if (!failed(s)) {
        return file_writer_commit(&w);
    }
    file_writer_abandon(&w);
    return s;
}

/* ---- an archive of several ---- */

static struct status write_entry(struct unpacking *u, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        return errno == EEXIST || errno == EISDIR
                   ? status_error(STATUS_DATA, "%s has the same name twice: %s", u->path, path)
                   : status_error(STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    }
    struct status s = status_ok();
    for (size_t n = 1; !failed(s) && n > 0;) {
        s = read_block(u, &n);
        for (size_t done = 0; !failed(s) && done < n;) {
            ssize_t written = write(fd, u->block + done, n - done);
            done += written > 0 ? (size_t)written : 0;
            if (written < 0 && errno != EINTR) {
                s = status_error(STATUS_IO, "writing %s failed: %s", path, strerror(errno));
            }
        }
    }
    if (!failed(s) && fsync(fd) != 0) {
        s = status_error(STATUS_IO, "fsync of %s failed: %s", path, strerror(errno));
    }
    close(fd);
    return s;
}

/* Files and directories only: a link may lead anywhere. */
static struct status unpack_entry(struct unpacking *u, struct archive_entry *entry, const char *directory,
                                  const char *top)
{
    char path[TEMPORARY_PATH_BYTES + 512], parent[FILE_PATH_BYTES];
    const char *name = lib.entry_pathname_utf8(entry);
    name = name == NULL ? lib.entry_pathname(entry) : name;
    FAIL_IF(name == NULL || !unpack_name(&name, name, top), STATUS_DATA,
            "%s has a file whose name leads out of the target or is invalid: '%.100s'", u->path,
            name == NULL ? "" : name);
    unsigned type = lib.entry_filetype(entry);
    FAIL_IF((type != AE_IFREG && type != AE_IFDIR) || lib.entry_hardlink(entry) != NULL, STATUS_DATA,
            "%s has '%.100s', which is neither a file nor a directory", u->path, name);
    if (name[0] == '\0') {
        return type == AE_IFDIR
                   ? status_ok()
                   : status_error(STATUS_DATA, "%s has a file with the name of its own directory", u->path);
    }
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FAIL_IF(strlen(path) >= FILE_PATH_BYTES, STATUS_USAGE, "the path %.60s... is longer than %d bytes", path,
            FILE_PATH_BYTES - 1);
    if (type == AE_IFDIR) {
        path[strlen(path) - (path[strlen(path) - 1] == '/')] = '\0';
        return file_make_directories(path);
    }
    file_parent(parent, path);
    TRY(file_make_directories(parent));
    return write_entry(u, path);
}

static struct status unpack_entries(struct unpacking *u, const char *directory, const char *top)
{
    for (int64_t n = 0;; n++) {
        struct archive_entry *entry;
        int code = lib.read_next_header(u->archive, &entry);
        if (code == ARCHIVE_EOF) {
            return n > 0 ? status_ok() : status_error(STATUS_DATA, "%s has no files", u->path);
        }
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {
            return damaged(u);
        }
        FAIL_IF(n >= MOST_ENTRIES, STATUS_DATA, "%s has more than %d files, so kiln does not unpack it",
                u->path, MOST_ENTRIES);
        TRY(unpack_entry(u, entry, directory, top));
    }
}

static struct status unpack_directory(struct unpacking *u, const char *target, const struct unpack_sum *sums)
{
    struct temporary t;
    const char *slash = strrchr(target, '/');
    temporary_clean(target);
    TRY(temporary_create_directory(&t, target));
    struct status s = unpack_entries(u, t.path, slash == NULL ? target : slash + 1);
    s = failed(s) ? s : check_whole(u, UNPACK_DIRECTORY);
    if (!failed(s)) {
        s = status_context(unpack_check(t.path, sums), "%s", u->path);
    }
    if (!failed(s)) {
        s = temporary_put_directory(&t, target);
    }
    if (failed(s)) {
        temporary_remove(&t);
    }
    return s;
}

static struct status open_archive(struct unpacking *u, int fd, enum unpack_kind kind)
{
    u->archive = lib.read_new();
    u->block = malloc(BLOCK_BYTES);
    FAIL_IF(u->archive == NULL || u->block == NULL, STATUS_MEMORY, "out of memory to unpack %s", u->path);
    int code = lib.support_filter_gzip(u->archive);
    code = code < ARCHIVE_WARN ? code : lib.support_filter_bzip2(u->archive);
    if (kind == UNPACK_FILE) {
        code = code < ARCHIVE_WARN ? code : lib.support_format_raw(u->archive);
    } else {
        code = code < ARCHIVE_WARN ? code : lib.support_format_zip(u->archive);
        code = code < ARCHIVE_WARN ? code : lib.support_format_tar(u->archive);
    }
    code = code < ARCHIVE_WARN ? code : lib.read_open_fd(u->archive, fd, BLOCK_BYTES);
    return code < ARCHIVE_WARN ? damaged(u) : status_ok();
}

struct status unpack_archive(const char *target, enum unpack_kind kind, const char *archive,
                             const struct unpack_sum *sums)
{
    int fd;
    size_t n;
    CHECK(kind != UNPACK_NONE, "%s is not an archive", archive);
    TRY(open_library());
    FAIL_IF(file_exists(target), STATUS_USAGE, "%s already exists, so %s cannot be unpacked there", target,
            archive);
    TRY(regular_file_open(&fd, &n, archive));
    struct unpacking u = {
        .path = archive, .archive_bytes = n, .most_bytes = (int64_t)n * MOST_RATIO + ALWAYS_ALLOWED};
    char parent[FILE_PATH_BYTES];
    file_parent(parent, target);
    u.free_bytes = file_free_bytes(parent);
    struct status s = open_archive(&u, fd, kind);
    if (!failed(s)) {
        s = kind == UNPACK_FILE ? unpack_file(&u, target) : unpack_directory(&u, target, sums);
    }
    if (u.archive != NULL) {
        lib.read_free(u.archive);
    }
    free(u.block);
    close(fd);
    return s;
}

const char *unpack_version(void)
{
    return failed(open_library()) ? NULL : lib.version_string();
}
