/* plain_stream: the bytes of a file as they are. */
#include "io/byte_stream.h"

static struct status open_plain(struct byte_stream *s)
{
    (void)s;
    return status_ok();
}

static struct status read_plain(struct byte_stream *s, void *to, size_t n, size_t *got)
{
    uint64_t left = s->file_bytes - s->offset;
    *got = n < left ? n : (size_t)left;
    TRY(byte_stream_read_file(s, to, *got, s->offset));
    s->file_at = s->offset + *got;
    /* whoever truncates a file may also have changed what was read before */
    return s->file_at == s->file_bytes ? byte_stream_check_size(s) : status_ok();
}

static struct status seek_plain(struct byte_stream *s, struct byte_place place)
{
    FAIL_IF(place.offset > s->file_bytes, STATUS_DATA,
            "%s has %llu bytes, so reading cannot continue at byte %llu: the file has changed", s->path,
            (unsigned long long)s->file_bytes, (unsigned long long)place.offset);
    s->offset = s->file_at = place.offset;
    return status_ok();
}

static void close_plain(struct byte_stream *s)
{
    (void)s;
}

const struct byte_stream_kind plain_stream = {
    .name = "plain",
    .open = open_plain,
    .read = read_plain,
    .seek = seek_plain,
    .close = close_plain,
};
