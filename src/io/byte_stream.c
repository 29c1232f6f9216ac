#include "io/byte_stream.h"

#include "core/log.h"
#include "core/regular_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct byte_stream_kind *const packed_kinds[] = {&bzip2_stream, &gzip_stream, &archive_stream};

void byte_stream_init(struct byte_stream *s)
{
    *s = (struct byte_stream){.fd = -1, .mutex = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};
}

void byte_stream_fini(struct byte_stream *s)
{
    byte_stream_close(s);
    pthread_cond_destroy(&s->left);
    pthread_mutex_destroy(&s->mutex);
}

static struct status cut_short(const struct byte_stream *s, uint64_t n_bytes)
{
    return status_error(STATUS_IO, "%s was cut from %llu to %llu bytes while it was read", s->path,
                        (unsigned long long)s->file_bytes, (unsigned long long)n_bytes);
}

void byte_stream_warn(const struct byte_stream *s, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!s->quiet) {
        log_warning("%s: %s", s->path, text);
    }
}

/* A file that was cut while it is read would otherwise look like a complete one that is shorter. */
struct status byte_stream_check_size(const struct byte_stream *s)
{
    struct stat info;
    bool known = fstat(s->fd, &info) == 0;
    return known && (uint64_t)info.st_size < s->file_bytes ? cut_short(s, (uint64_t)info.st_size)
                                                           : status_ok();
}

struct status byte_stream_read_file(const struct byte_stream *s, void *to, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(s->fd, (char *)to + done, n - done, (off_t)(at + done));
        if (got == 0) {
            TRY(byte_stream_check_size(s));
            return cut_short(s, at + done);
        }
        FAIL_IF(got < 0 && errno != EINTR, STATUS_IO, "cannot read %s: %s", s->path, strerror(errno));
        done += got < 0 ? 0 : (size_t)got;
    }
    return status_ok();
}

static struct status choose_kind(struct byte_stream *s, uint64_t wanted_bytes)
{
    unsigned char head[16];
    size_t n = s->file_bytes < sizeof head ? (size_t)s->file_bytes : sizeof head;
    if (s->file_bytes < wanted_bytes) {
        uint64_t n_bytes = s->file_bytes;
        s->file_bytes = wanted_bytes;
        return cut_short(s, n_bytes);
    }
    TRY(byte_stream_read_file(s, head, n, 0));
    const struct byte_stream_kind *kind = &plain_stream;
    for (size_t i = 0; i < sizeof packed_kinds / sizeof packed_kinds[0]; i++) {
        kind = packed_kinds[i]->recognises(head, n) ? packed_kinds[i] : kind;
    }
    TRY(kind->open(s));
    s->kind = kind;
    return status_ok();
}

static void close_file(struct byte_stream *s)
{
    close(s->fd);
    s->fd = -1;
}

/* Between two files a helper finds accepts_help false. */
static void accept_help(struct byte_stream *s, bool accepts)
{
    pthread_mutex_lock(&s->mutex);
    s->accepts_help = accepts;
    while (!accepts && s->n_helpers > 0) {
        pthread_cond_wait(&s->left, &s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
}

struct status byte_stream_open(struct byte_stream *s, const char *path, uint64_t wanted_bytes)
{
    size_t n_bytes;
    byte_stream_close(s);
    s->path = path;
    TRY(regular_file_open(&s->fd, &n_bytes, path));
    s->file_bytes = n_bytes;
    s->file_at = s->offset = 0;
    s->at_gap = s->ends_early = false;
    s->n_damaged = 0;
    struct status status = choose_kind(s, wanted_bytes);
    if (failed(status)) {
        close_file(s);
        return status;
    }
    accept_help(s, s->kind->help != NULL);
    return status_ok();
}

void byte_stream_close(struct byte_stream *s)
{
    if (s->kind != NULL) {
        accept_help(s, false);
        s->kind->close(s);
        s->kind = NULL;
        s->state = NULL;
        close_file(s);
    }
}

/* No text is packed so well: prose comes to a third of its size, a dump of Wikipedia to a quarter. */
static struct status check_ratio(const struct byte_stream *s)
{
    enum { MOST_TIMES = 100, FREE_BYTES = 64 << 20 /* a small file may be one sentence, over and over */ };
    bool is_bomb = byte_stream_is_packed(s) && s->offset > FREE_BYTES && s->offset / MOST_TIMES > s->file_at;
    return is_bomb ? status_error(STATUS_DATA,
                                  "%s: its first %llu bytes unpack to more than %d times their size, which "
                                  "no text does; if the file is right, unpack it first",
                                  s->path, (unsigned long long)s->file_at, MOST_TIMES)
                   : status_ok();
}

struct status byte_stream_read(struct byte_stream *s, void *to, size_t n, size_t *got)
{
    *got = 0;
    if (s->at_gap) {
        return status_ok();
    }
    TRY(s->kind->read(s, to, n, got));
    s->offset += *got;
    return check_ratio(s);
}

void byte_stream_pass_gap(struct byte_stream *s)
{
    s->at_gap = false;
}

struct byte_place byte_stream_place(const struct byte_stream *s, uint64_t offset)
{
    return s->kind->place == NULL ? (struct byte_place){.offset = offset} : s->kind->place(s, offset);
}

struct status byte_stream_seek(struct byte_stream *s, struct byte_place place)
{
    accept_help(s, false);
    s->at_gap = false;
    struct status status = s->kind->seek(s, place);
    accept_help(s, s->kind->help != NULL);
    return status;
}

struct status byte_stream_skip(struct byte_stream *s, uint64_t offset)
{
    char bytes[4096];
    size_t got = 1;
    while (s->offset < offset && (got > 0 || s->at_gap)) {
        uint64_t left = offset - s->offset;
        byte_stream_pass_gap(s);
        TRY(byte_stream_read(s, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes, &got));
    }
    return s->offset == offset
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s unpacks to %llu bytes, so reading cannot continue at byte %llu: the file "
                              "has changed",
                              s->path, (unsigned long long)s->offset, (unsigned long long)offset);
}

bool byte_stream_help(struct byte_stream *s)
{
    pthread_mutex_lock(&s->mutex);
    bool accepted = s->accepts_help;
    s->n_helpers += accepted;
    pthread_mutex_unlock(&s->mutex);
    bool helped = accepted && s->kind->help(s);
    if (accepted) {
        pthread_mutex_lock(&s->mutex);
        s->n_helpers--;
        pthread_cond_broadcast(&s->left);
        pthread_mutex_unlock(&s->mutex);
    }
    return helped;
}

bool byte_stream_is_packed(const struct byte_stream *s)
{
    return s->kind != &plain_stream;
}
