#include "corpus/text_reader.h"

#include "core/regular_file.h"
#include "text/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void text_reader_init(struct text_reader *r)
{
    *r = (struct text_reader){.fd = -1};
}

void text_reader_fini(struct text_reader *r)
{
    text_reader_close(r);
    free(r->buffer);
    text_reader_init(r);
}

void text_reader_close(struct text_reader *r)
{
    if (r->fd >= 0) {
        close(r->fd);
    }
    *r = (struct text_reader){.fd = -1, .buffer = r->buffer, .capacity = r->capacity};
}

static bool at_end_of_file(const struct text_reader *r)
{
    return r->buffer_at + r->n == r->n_bytes;
}

static struct status cut_short(const struct text_reader *r, uint64_t n_bytes)
{
    return status_error(STATUS_IO, "%s was cut from %llu to %llu bytes while it was read", r->path,
                        (unsigned long long)r->n_bytes, (unsigned long long)n_bytes);
}

/* Checked at the end of the file: whoever truncated it may also have changed what was read before. */
static struct status check_size(const struct text_reader *r)
{
    struct stat info;
    bool known = fstat(r->fd, &info) == 0;
    return known && (uint64_t)info.st_size < r->n_bytes ? cut_short(r, (uint64_t)info.st_size) : status_ok();
}

/* Makes room for a block after the unread bytes, which move to the front. */
static struct status make_room(struct text_reader *r)
{
    if (r->at > 0) {
        memmove(r->buffer, r->buffer + r->at, r->n - r->at);
        r->buffer_at += r->at;
        r->n -= r->at;
        r->checked -= r->at;
        r->at = 0;
    }
    if (r->capacity - r->n >= TEXT_READER_BLOCK_BYTES) {
        return status_ok();
    }
    size_t capacity = 2 * r->capacity + TEXT_READER_BLOCK_BYTES;
    char *buffer = realloc(r->buffer, capacity);
    if (buffer == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a line of %s", r->path);
    }
    r->buffer = buffer;
    r->capacity = capacity;
    return status_ok();
}

/* Reads a block, but not beyond the size that the file had when it was opened. */
static struct status read_block(struct text_reader *r)
{
    TRY(make_room(r));
    uint64_t left = r->n_bytes - r->buffer_at - r->n;
    size_t wanted = left < TEXT_READER_BLOCK_BYTES ? (size_t)left : TEXT_READER_BLOCK_BYTES;
    while (wanted > 0) {
        ssize_t n = read(r->fd, r->buffer + r->n, wanted);
        if (n == 0) {
            TRY(check_size(r));
            return cut_short(r, r->buffer_at + r->n);
        }
        if (n < 0 && errno != EINTR) {
            return status_error(STATUS_IO, "cannot read %s: %s", r->path, strerror(errno));
        }
        size_t got = n < 0 ? 0 : (size_t)n;
        r->n += got;
        wanted -= got;
    }
    return at_end_of_file(r) ? check_size(r) : status_ok();
}

/* A sequence that is split by the end of a block is checked with the next block. */
static struct status check_block(struct text_reader *r)
{
    if (r->replace_invalid_utf8) {
        r->checked = r->n;
        return status_ok();
    }
    size_t bad = r->checked + utf8_find_invalid(r->buffer + r->checked, r->n - r->checked);
    if (bad < r->n && (at_end_of_file(r) || r->n - bad >= UTF8_MAX_BYTES)) {
        return status_error(
            STATUS_DATA,
            "%s is not UTF-8: byte %llu is 0x%02x; convert it with iconv, or replace such bytes by "
            "U+FFFD with --replace_invalid_utf8",
            r->path, (unsigned long long)(r->buffer_at + bad), (unsigned char)r->buffer[bad]);
    }
    r->checked = bad;
    return status_ok();
}

struct status text_reader_open(struct text_reader *r, const char *path, uint64_t wanted_bytes,
                               bool replace_invalid_utf8)
{
    size_t n_bytes;
    text_reader_close(r);
    r->path = path;
    r->replace_invalid_utf8 = replace_invalid_utf8;
    TRY(regular_file_open(&r->fd, &n_bytes, path));
    r->n_bytes = wanted_bytes;
    struct status s = n_bytes < wanted_bytes ? cut_short(r, n_bytes) : status_ok();
    r->n_bytes = n_bytes;
    if (!failed(s)) {
        s = read_block(r);
    }
    if (failed(s)) {
        text_reader_close(r);
    }
    return s;
}

const char *text_reader_head(const struct text_reader *r, size_t *n)
{
    _Static_assert(TEXT_READER_BLOCK_BYTES >= TEXT_READER_HEAD_BYTES, "the first block holds the head");
    *n = r->n;
    return r->buffer;
}

size_t text_reader_mark_bytes(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

struct text_place text_reader_place(const struct text_reader *r)
{
    return (struct text_place){r->buffer_at + r->at, r->line};
}

struct status text_reader_seek(struct text_reader *r, struct text_place place)
{
    if (place.offset > r->n_bytes) {
        return status_error(STATUS_DATA,
                            "%s has %llu bytes, so reading cannot continue at byte %llu: it has changed",
                            r->path, (unsigned long long)r->n_bytes, (unsigned long long)place.offset);
    }
    uint64_t begin =
        place.offset > 0 ? place.offset - 1 : 0; /* one byte earlier, which shows whether a line begins
                                                  * here */
    if (lseek(r->fd, (off_t)begin, SEEK_SET) < 0) {
        return status_error(STATUS_IO, "cannot seek in %s: %s", r->path, strerror(errno));
    }
    r->buffer_at = begin;
    r->n = r->checked = r->at = 0;
    TRY(read_block(r));
    r->at = r->checked = (size_t)(place.offset - begin);
    r->inside_line = r->at > 0 && r->buffer[0] != '\n';
    r->line = place.line;
    return place.offset > 0 ? check_block(r) : status_ok();
}

/* Where to cut the line that begins at `at` and is too long: after its last white space, or before a
 * character. */
static size_t cut_line(const struct text_reader *r)
{
    size_t limit = TEXT_READER_LINE_BYTES;
    const char *text = r->buffer + r->at;
    size_t n = limit;
    while (n > 0 && text[n - 1] != ' ' && text[n - 1] != '\t') {
        n--;
    }
    if (n > 0) {
        return n;
    }
    for (n = limit; n > limit - UTF8_MAX_BYTES && ((unsigned char)text[n] & 0xC0) == 0x80; n--) {
    }
    return n;
}

/* Returns n bytes, and skips `skip` more: the line end, if it is the line's last part. */
static struct text_line take(struct text_reader *r, size_t n, size_t skip, bool ends)
{
    struct text_line l = {.text = r->buffer + r->at, .n = n, .continues = r->inside_line};
    r->line += !r->inside_line;
    r->inside_line = !ends;
    r->at += n + skip;
    return text_line_trim(l);
}

struct status text_reader_next(struct text_reader *r, struct text_line *line, bool *end)
{
    *end = false;
    if (r->buffer_at == 0 && r->at == 0 && r->checked == 0 && r->n > 0) {
        TRY(check_block(r));
        r->at = text_reader_mark_bytes(r->buffer, r->n);
    }
    for (size_t scanned = 0;;) { /* bytes searched for the line's end */
        const char *begin = r->buffer + r->at;
        size_t there = r->checked - r->at;
        const char *found = there == scanned ? NULL : memchr(begin + scanned, '\n', there - scanned);
        if (found != NULL && found - begin <= TEXT_READER_LINE_BYTES) {
            *line = take(r, (size_t)(found - begin), 1, true);
            return status_ok();
        }
        if (there > TEXT_READER_LINE_BYTES) {
            *line = take(r, cut_line(r), 0, false);
            return status_ok();
        }
        scanned = there;
        if (at_end_of_file(r)) {
            *end = there == 0;
            if (!*end) {
                *line = take(r, there, 0, true);
            }
            return status_ok();
        }
        TRY(read_block(r));
        TRY(check_block(r));
    }
}

int64_t text_reader_repair(struct buf *out, const char *text, size_t n)
{
    int64_t n_replaced = 0;
    for (size_t bad; (bad = utf8_find_invalid(text, n)) < n;) {
        buf_append(out, text, bad);
        buf_puts(out, "\xef\xbf\xbd");
        uint32_t replacement;
        size_t skip = bad + (size_t)utf8_decode(&replacement, text + bad, n - bad);
        text += skip;
        n -= skip;
        n_replaced++;
    }
    buf_append(out, text, n);
    return n_replaced;
}
