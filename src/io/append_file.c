#include "io/append_file.h"

#include "core/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 18 };

size_t block_sums_count(size_t n)
{
    return n / BLOCK_SUMS_BYTES + (n % BLOCK_SUMS_BYTES != 0);
}

void block_sums_end(struct block_sums *b)
{
    if (b->filled > 0) {
        buf_append(&b->crcs, &b->crc, sizeof b->crc);
    }
    b->crc = 0;
    b->filled = 0;
}

void block_sums_add(struct block_sums *b, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n > 0) {
        size_t room = BLOCK_SUMS_BYTES - b->filled, part = n < room ? n : room;
        b->crc = hash_crc32c(b->crc, p, part);
        b->filled += part;
        p += part;
        n -= part;
        if (b->filled == BLOCK_SUMS_BYTES) {
            block_sums_end(b);
        }
    }
}

void block_sums_fini(struct block_sums *b)
{
    buf_fini(&b->crcs);
    *b = (struct block_sums){0};
}

struct status append_file_read(const char *path, uint64_t n_bytes,
                               void (*visit)(void *context, const unsigned char *bytes, size_t n),
                               void *context)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char *buffer = malloc(BUFFER_BYTES);
    struct status s = status_ok();
    if (fd < 0 || buffer == NULL) {
        s = fd < 0 ? status_error(STATUS_IO, "cannot open %s: %s", path, strerror(errno))
                   : status_error(STATUS_MEMORY, "out of memory to read %s", path);
    }
    for (uint64_t at = 0; at < n_bytes && !failed(s);) {
        size_t wanted = n_bytes - at < BUFFER_BYTES ? (size_t)(n_bytes - at) : BUFFER_BYTES, got = 0;
        for (ssize_t n = 1; got < wanted && n > 0; got += n > 0 ? (size_t)n : 0) {
            n = pread(fd, buffer + got, wanted - got, (off_t)(at + got));
        }
        if (got < wanted) {
            s = status_error(STATUS_IO, "%s ends at byte %llu, but should have %llu bytes", path,
                             (unsigned long long)(at + got), (unsigned long long)n_bytes);
        } else {
            visit(context, buffer, wanted);
        }
        at += wanted;
    }
    free(buffer);
    if (fd >= 0) {
        close(fd);
    }
    return s;
}

static void count(void *context, const unsigned char *bytes, size_t n)
{
    struct append_file *f = context;
    f->mark.crc = hash_crc32c(f->mark.crc, bytes, n);
    f->mark.n_bytes += n;
    block_sums_add(&f->sums, bytes, n);
}

/* Counts what is kept, and drops what is after it. */
static struct status keep(struct append_file *f, struct append_mark from)
{
    struct status s = append_file_read(f->path, from.n_bytes, count, f);
    FAIL_IF(failed(s) || f->mark.crc != from.crc, STATUS_DATA,
            "%s has changed since an earlier run wrote its first %llu bytes, so no run can continue it",
            f->path, (unsigned long long)from.n_bytes);
    FAIL_IF(ftruncate(f->fd, (off_t)from.n_bytes) != 0 || lseek(f->fd, 0, SEEK_END) < 0, STATUS_IO,
            "cannot shorten %s to %llu bytes: %s", f->path, (unsigned long long)from.n_bytes,
            strerror(errno));
    return status_ok();
}

struct status append_file_open(struct append_file *f, const char *path, struct append_mark from)
{
    *f = (struct append_file){.fd = -1};
    FAIL_IF((size_t)snprintf(f->path, sizeof f->path, "%s", path) >= sizeof f->path, STATUS_USAGE,
            "the path %.60s... is longer than %zu bytes", path, sizeof f->path - 1);
    f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (from.n_bytes == 0 ? O_CREAT : 0), 0666);
    if (f->fd < 0) {
        return status_error(errno == ENOENT && from.n_bytes > 0 ? STATUS_DATA : STATUS_IO,
                            "cannot open %s: %s", path, strerror(errno));
    }
    struct status s = keep(f, from);
    f->buffer = failed(s) ? NULL : malloc(BUFFER_BYTES);
    if (f->buffer == NULL) {
        s = failed(s) ? s : status_error(STATUS_MEMORY, "out of memory for the write buffer of %s", path);
        append_file_close(f);
    }
    return s;
}

static void write_out(struct append_file *f, const unsigned char *p, size_t n)
{
    count(f, p, n); /* here, since checksums of a few bytes at a time would cost more than the copy */
    while (n > 0 && !failed(f->status)) {
        ssize_t written = write(f->fd, p, n);
        if (written < 0 && errno != EINTR) {
            f->status = status_error(STATUS_IO, "writing %s failed near byte %llu: %s", f->path,
                                     (unsigned long long)f->mark.n_bytes, strerror(errno));
        } else if (written > 0) {
            p += written;
            n -= (size_t)written;
        }
    }
}

void append_file_put(struct append_file *f, const void *bytes, size_t n)
{
    if (failed(f->status) || n == 0) {
        return;
    }
    if (n > BUFFER_BYTES - f->buffered) {
        write_out(f, f->buffer, f->buffered);
        f->buffered = 0;
    }
    if (n > BUFFER_BYTES) {
        write_out(f, bytes, n);
    } else {
        memcpy(f->buffer + f->buffered, bytes, n);
        f->buffered += n;
    }
}

/* fsync is not retried: after a failure the kernel may have dropped the pages (Rebello et al., ATC 2020). */
struct status append_file_sync(struct append_file *f)
{
    write_out(f, f->buffer, f->buffered);
    f->buffered = 0;
    if (!failed(f->status) && fsync(f->fd) != 0) {
        f->status = status_error(STATUS_IO, "fsync of %s failed: %s", f->path, strerror(errno));
    }
    return failed(f->status) ? f->status : buf_status(&f->sums.crcs);
}

void append_file_close(struct append_file *f)
{
    if (f->fd > 0) {
        close(f->fd);
    }
    free(f->buffer);
    block_sums_fini(&f->sums);
    f->buffer = NULL;
    f->fd = -1;
}
