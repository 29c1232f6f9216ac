/* gzip_stream: a gzip file, or several end to end (RFC 1952), unpacked by zlib.
 *
 * A seek unpacks again from the beginning: deflate has no place where unpacking can begin. */
#include "io/byte_stream.h"

#include <stdlib.h>
#include <zlib.h>

enum { IN_BYTES = 1 << 16, GZIP_WINDOW = 15 + 16 /* the largest window, in the gzip format */ };

struct gzip {
    z_stream z;
    unsigned char in[IN_BYTES];
    bool inside; /* a member was begun, and has not ended */
    bool ended;
};

static bool recognises(const unsigned char *head, size_t n)
{
    return n >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8; /* 8: deflate */
}

static struct status open_gzip(struct byte_stream *s)
{
    struct gzip *g = calloc(1, sizeof *g);
    if (g == NULL || inflateInit2(&g->z, GZIP_WINDOW) != Z_OK) {
        free(g);
        return status_error(STATUS_MEMORY, "out of memory to unpack %s", s->path);
    }
    s->state = g;
    return status_ok();
}

static void close_gzip(struct byte_stream *s)
{
    struct gzip *g = s->state;
    inflateEnd(&g->z);
    free(g);
}

/* The next bytes of the file, if there are any. */
static struct status fill(struct byte_stream *s, struct gzip *g)
{
    uint64_t left = s->file_bytes - s->file_at;
    size_t n = left < IN_BYTES ? (size_t)left : IN_BYTES;
    TRY(byte_stream_read_file(s, g->in, n, s->file_at));
    s->file_at += n;
    g->z.next_in = g->in;
    g->z.avail_in = (uInt)n;
    return n == left ? byte_stream_check_size(s) : status_ok();
}

static void warn_of_the_end(struct byte_stream *s)
{
    byte_stream_warn(s, "it is cut short; the data before the end is used");
    s->ends_early = true;
}

static struct status damaged(const struct byte_stream *s, const struct gzip *g)
{
    return status_error(
        STATUS_DATA, "%s is damaged: its gzip data is wrong at byte %llu (%s); download it or make it again",
        s->path, (unsigned long long)(s->file_at - g->z.avail_in),
        g->z.msg == NULL ? "invalid data" : g->z.msg);
}

/* One call of inflate, which may have bytes to give when the file has ended: the end is where it has none
 * left.  After a member another may begin; anything else, such as padding, is ignored, as gunzip does. */
static struct status unpack(struct byte_stream *s, struct gzip *g)
{
    if (!g->inside && (g->z.avail_in == 0 || *g->z.next_in != 0x1f)) {
        g->ended = true;
        return status_ok();
    }
    g->inside = true;
    int result = inflate(&g->z, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
        g->inside = false;
        return inflateReset(&g->z) == Z_OK ? status_ok() : damaged(s, g);
    }
    FAIL_IF(result == Z_MEM_ERROR, STATUS_MEMORY, "out of memory to unpack %s", s->path);
    if (result == Z_BUF_ERROR && g->z.avail_in == 0) {
        warn_of_the_end(s);
        g->ended = true;
        return status_ok();
    }
    return result == Z_OK ? status_ok() : damaged(s, g);
}

static struct status read_gzip(struct byte_stream *s, void *to, size_t n, size_t *got)
{
    struct gzip *g = s->state;
    uInt wanted = n < 1u << 30 ? (uInt)n : 1u << 30;
    g->z.next_out = to;
    g->z.avail_out = wanted;
    while (g->z.avail_out == wanted && !g->ended) {
        if (g->z.avail_in == 0) {
            TRY(fill(s, g));
        }
        TRY(unpack(s, g));
    }
    *got = wanted - g->z.avail_out;
    return status_ok();
}

static struct status seek_gzip(struct byte_stream *s, struct byte_place place)
{
    struct gzip *g = s->state;
    inflateReset(&g->z);
    g->z.avail_in = 0;
    g->inside = g->ended = false;
    s->file_at = s->offset = 0;
    return byte_stream_skip(s, place.offset);
}

const struct byte_stream_kind gzip_stream = {
    .name = "gzip",
    .recognises = recognises,
    .open = open_gzip,
    .read = read_gzip,
    .seek = seek_gzip,
    .close = close_gzip,
};
