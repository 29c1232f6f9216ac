/* archive_stream: a zstd or an xz file, or several end to end, unpacked by libarchive, which is loaded when
 * the first is opened.
 *
 * A seek unpacks again from the beginning, as that of a gzip file does. */
#define _GNU_SOURCE
#include "core/shared_library.h"
#include "io/byte_stream.h"

#include <archive.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1 << 18 };

static struct {
    bool is_open;
    struct archive *(*read_new)(void);
    int (*support_filter_zstd)(struct archive *a);
    int (*support_filter_xz)(struct archive *a);
    int (*support_format_raw)(struct archive *a);
    int (*read_open_fd)(struct archive *a, int fd, size_t block_bytes);
    int (*read_next_header)(struct archive *a, struct archive_entry **entry);
    la_ssize_t (*read_data)(struct archive *a, void *bytes, size_t n);
    int (*read_free)(struct archive *a);
    la_int64_t (*filter_bytes)(struct archive *a, int i);
    const char *(*error_string)(struct archive *a);
} lib;

static struct status open_library(void)
{
    static const struct shared_symbol symbols[] = {
        {"archive_read_new", (void **)&lib.read_new},
        {"archive_read_support_filter_zstd", (void **)&lib.support_filter_zstd},
        {"archive_read_support_filter_xz", (void **)&lib.support_filter_xz},
        {"archive_read_support_format_raw", (void **)&lib.support_format_raw},
        {"archive_read_open_fd", (void **)&lib.read_open_fd},
        {"archive_read_next_header", (void **)&lib.read_next_header},
        {"archive_read_data", (void **)&lib.read_data},
        {"archive_read_free", (void **)&lib.read_free},
        {"archive_filter_bytes", (void **)&lib.filter_bytes},
        {"archive_error_string", (void **)&lib.error_string},
        {0},
    };
    TRY(lib.is_open ? status_ok() : shared_library_open(KILN_ARCHIVE_LIBRARY, "libarchive13", symbols));
    lib.is_open = true;
    return status_ok();
}

static bool is_zstd(const unsigned char *head, size_t n)
{
    return n >= 4 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0;
}

static bool recognises(const unsigned char *head, size_t n)
{
    return is_zstd(head, n) || (n >= 6 && memcmp(head,
                                                 "\xfd"
                                                 "7zXZ",
                                                 6) == 0);
}

/* libarchive says only in words that a file lacks its end: the second are those of an xz file. */
static struct status damaged(struct byte_stream *s, struct archive *a)
{
    const char *why = lib.error_string(a);
    if (why != NULL && (strcasestr(why, "truncated") != NULL || strstr(why, "No progress") != NULL)) {
        byte_stream_warn(s, "it is cut short; the data before the end is used");
        s->ends_early = true;
        return status_ok();
    }
    return status_error(STATUS_DATA, "%s is damaged, or packed in a way that libarchive does not read: %s",
                        s->path, why == NULL ? "invalid data" : why);
}

static struct status begin(struct byte_stream *s)
{
    struct archive *a = s->state = lib.read_new();
    struct archive_entry *entry;
    FAIL_IF(a == NULL, STATUS_MEMORY, "out of memory to unpack %s", s->path);
    lseek(s->fd, 0, SEEK_SET);
    s->file_at = s->offset = 0;
    bool is_open = lib.support_filter_zstd(a) == ARCHIVE_OK && lib.support_filter_xz(a) == ARCHIVE_OK &&
                   lib.support_format_raw(a) == ARCHIVE_OK &&
                   lib.read_open_fd(a, s->fd, BLOCK_BYTES) == ARCHIVE_OK;
    return is_open && lib.read_next_header(a, &entry) >= ARCHIVE_OK ? status_ok() : damaged(s, a);
}

static void close_archive(struct byte_stream *s)
{
    if (s->state != NULL) {
        lib.read_free(s->state);
    }
    s->state = NULL;
}

static struct status open_archive(struct byte_stream *s)
{
    TRY(open_library());
    struct status status = begin(s);
    if (failed(status)) {
        close_archive(s);
    }
    return status;
}

static struct status read_archive(struct byte_stream *s, void *to, size_t n, size_t *got)
{
    la_ssize_t read = s->ends_early ? 0 : lib.read_data(s->state, to, n);
    *got = read < 0 ? 0 : (size_t)read;
    s->file_at = (uint64_t)lib.filter_bytes(s->state, -1);
    TRY(byte_stream_check_size(s));
    return read < 0 ? damaged(s, s->state) : status_ok();
}

static struct status seek_archive(struct byte_stream *s, struct byte_place place)
{
    close_archive(s);
    s->ends_early = false;
    TRY(begin(s));
    return byte_stream_skip(s, place.offset);
}

const struct byte_stream_kind archive_stream = {
    .name = "zstd or xz",
    .recognises = recognises,
    .open = open_archive,
    .read = read_archive,
    .seek = seek_archive,
    .close = close_archive,
};
