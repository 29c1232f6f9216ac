#include "corpus/text_reader.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

void text_reader_init(struct text_reader *r)
{
    *r = (struct text_reader){0};
    byte_stream_init(&r->stream);
}

void text_reader_fini(struct text_reader *r)
{
    byte_stream_fini(&r->stream);
    encoding_close(&r->encoding);
    buf_fini(&r->raw);
    buf_fini(&r->converted);
    free(r->buffer);
    *r = (struct text_reader){0};
}

struct status text_reader_check_end(const struct text_reader *r)
{
    return !r->stream.ends_early
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s is cut short: download all of it, or use what is there with "
                              "--allow_truncated_input",
                              r->stream.path);
}

void text_reader_close(struct text_reader *r)
{
    byte_stream_close(&r->stream);
    encoding_close(&r->encoding);
    buf_clear(&r->raw);
    r->buffer_at = r->raw_at = 0;
    r->n = r->checked = r->at = 0;
    r->line = r->n_gaps = 0;
    r->inside_line = r->ended = r->keeps_blanks = false;
}

/* Reserves space for `wanted` bytes after the unread ones, which move to the front. */
static struct status make_room(struct text_reader *r, size_t wanted)
{
    if (r->at > 0) {
        memmove(r->buffer, r->buffer + r->at, r->n - r->at);
        r->buffer_at += r->at;
        r->n -= r->at;
        r->checked -= r->at;
        r->at = 0;
    }
    if (r->capacity - r->n >= wanted) {
        return status_ok();
    }
    size_t capacity = 2 * r->capacity + wanted;
    char *buffer = realloc(r->buffer, capacity);
    FAIL_IF(buffer == NULL, STATUS_MEMORY, "out of memory for a line of %s", r->path);
    r->buffer = buffer;
    r->capacity = capacity;
    return status_ok();
}

/* Reads a block of the stream, or less if it ends or has a gap; *n bytes. */
static struct status read_stream(struct text_reader *r, char *to, size_t *n)
{
    *n = 0;
    for (size_t got = 1; *n < TEXT_READER_BLOCK_BYTES && got > 0; *n += got) {
        TRY(byte_stream_read(&r->stream, to + *n, TEXT_READER_BLOCK_BYTES - *n, &got));
        r->ended = got == 0;
    }
    return status_ok();
}

/* At a gap or an early end, the rest of a character is dropped with the line that it is in. */
static struct status read_encoded(struct text_reader *r)
{
    size_t n, n_taken;
    char *room = buf_extend(&r->raw, TEXT_READER_BLOCK_BYTES);
    TRY(buf_status(&r->raw));
    TRY(read_stream(r, room, &n));
    r->raw.n -= TEXT_READER_BLOCK_BYTES - n;
    bool is_end = r->ended && !r->stream.at_gap && !r->stream.ends_early;
    buf_clear(&r->converted);
    struct status s = encoding_convert(&r->encoding, &r->converted, r->raw.data, r->raw.n, is_end, &n_taken);
    FAIL_IF(s.code == STATUS_DATA, STATUS_DATA, "%s is not %s: byte %llu is 0x%02x; give its --encoding",
            r->path, r->encoding.name, (unsigned long long)(r->raw_at + n_taken),
            (unsigned char)r->raw.data[n_taken]);
    TRY(s);
    TRY(make_room(r, r->converted.n));
    memcpy(r->buffer + r->n, buf_text(&r->converted), r->converted.n);
    r->n += r->converted.n;
    memmove(r->raw.data, r->raw.data + n_taken, r->raw.n - n_taken);
    r->raw.n -= n_taken;
    r->raw_at += n_taken;
    return status_ok();
}

/* Reads a block, or less if the stream ends or has a gap. */
static struct status read_block(struct text_reader *r)
{
    size_t n;
    if (r->encoding.converter != NULL) {
        return read_encoded(r);
    }
    TRY(make_room(r, TEXT_READER_BLOCK_BYTES));
    TRY(read_stream(r, r->buffer + r->n, &n));
    r->n += n;
    return status_ok();
}

/* Before bytes that do not follow those converted last. */
static void restart_encoding(struct text_reader *r)
{
    r->raw_at += r->raw.n;
    buf_clear(&r->raw);
    encoding_restart(&r->encoding);
}

/* A sequence that is split by the end of a block is checked with the next block. */
static struct status check_block(struct text_reader *r)
{
    if (r->replace_invalid_utf8) {
        r->checked = r->n;
        return status_ok();
    }
    size_t bad = r->checked + utf8_find_invalid(r->buffer + r->checked, r->n - r->checked);
    bool is_cut = !r->ended || r->stream.at_gap || r->stream.ends_early;
    FAIL_IF(bad < r->n && (!is_cut || r->n - bad >= UTF8_MAX_BYTES), STATUS_DATA,
            "%s is not UTF-8: byte %llu is 0x%02x; give its --encoding, such as latin-1, or "
            "replace such bytes with U+FFFD by --replace_invalid_utf8%s",
            r->path, (unsigned long long)(r->buffer_at + bad), (unsigned char)r->buffer[bad],
            r->stream.kind == &gzip_stream ? "; `gzip -t` says whether the file is damaged" : "");
    r->checked = bad;
    return status_ok();
}

struct status text_reader_open(struct text_reader *r, const char *path, uint64_t wanted_bytes,
                               const char *encoding, bool replace_invalid_utf8)
{
    text_reader_close(r);
    r->path = path;
    r->replace_invalid_utf8 = replace_invalid_utf8;
    TRY(encoding_open(&r->encoding, encoding));
    struct status s = byte_stream_open(&r->stream, path, wanted_bytes);
    s = failed(s) ? s : read_block(r);
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

uint64_t text_reader_offset(const struct text_reader *r)
{
    return r->buffer_at + r->at;
}

struct text_place text_reader_place(const struct text_reader *r)
{
    uint64_t offset = text_reader_offset(r);
    if (r->encoding.converter !=
        NULL) { /* converted bytes are not those of the stream: a seek reads from the beginning */
        return (struct text_place){.offset = offset, .line = r->line};
    }
    return (struct text_place){offset, byte_stream_place(&r->stream, offset > 0 ? offset - 1 : 0), r->line};
}

uint64_t text_reader_done_bytes(const struct text_reader *r)
{
    bool is_other = byte_stream_is_packed(&r->stream) || r->encoding.converter != NULL;
    return is_other ? r->stream.file_at : text_reader_offset(r);
}

struct status text_reader_seek(struct text_reader *r, struct text_place place)
{
    TRY(byte_stream_seek(&r->stream, place.before));
    r->buffer_at = place.before.offset;
    r->n = r->checked = r->at = 0;
    restart_encoding(r);
    r->raw_at = 0;
    TRY(read_block(r));
    while (r->buffer_at + r->n < place.offset && !r->ended) { /* text of another encoding; one byte is kept */
        r->at = r->checked = r->n > 0 ? r->n - 1 : 0;
        TRY(read_block(r));
    }
    size_t skip = (size_t)(place.offset - r->buffer_at);
    FAIL_IF(skip > r->n, STATUS_DATA,
            "%s has %llu bytes, so reading cannot continue at byte %llu: the file has changed", r->path,
            (unsigned long long)(r->buffer_at + r->n), (unsigned long long)place.offset);
    r->at = r->checked = skip;
    r->inside_line = r->at > 0 && r->buffer[r->at - 1] != '\n';
    r->line = place.line;
    return place.offset > 0 ? check_block(r) : status_ok();
}

/* The length at which to cut the line that begins at `at` and is too long: after its last white space, or
 * before a character. */
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
    r->last = r->at;
    r->at += n + skip;
    return r->keeps_blanks ? l : text_line_trim(l);
}

void text_reader_put_back(struct text_reader *r)
{
    r->at = r->last;
    r->line--;
    r->inside_line = false;
}

/* Leaves out the line that the gap has cut, and the rest of the line after it, wherever it ends. */
static struct status pass_gap(struct text_reader *r)
{
    const char *found = NULL;
    r->n_gaps++;
    r->inside_line = false;
    r->ended = false;
    byte_stream_pass_gap(&r->stream);
    restart_encoding(r);
    while (found == NULL && !r->ended) {
        r->at = r->checked = r->n;
        TRY(read_block(r));
        found = memchr(r->buffer + r->at, '\n', r->n - r->at);
    }
    r->at = r->checked = found == NULL ? r->n : (size_t)(found + 1 - r->buffer);
    return check_block(r);
}

struct status text_reader_next(struct text_reader *r, struct text_line *line, bool *end)
{
    *end = false;
    if (r->buffer_at == 0 && r->at == 0 && r->checked == 0 && r->n > 0) {
        TRY(check_block(r));
        r->at = utf8_mark_bytes(r->buffer, r->n);
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
        if (r->ended && r->stream.at_gap) {
            TRY(pass_gap(r));
            scanned = 0;
            continue;
        }
        if (r->ended) {
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
