#include "text/unicode_form.h"

#include "core/array.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

void unicode_form_room_fini(struct unicode_form_room *r)
{
    free(r->points);
    *r = (struct unicode_form_room){0};
}

/* The lead byte of U+0300 is 0xCC. */
bool unicode_form_is_plain(enum unicode_form form, const char *text, size_t n)
{
    unsigned char end = form == UNICODE_NFC ? 0xCC : 0x80, most = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        most = byte > most ? byte : most;
    }
    return most < end;
}

/* Whether a character may be joined to, or ordered among, those before it. */
static bool extends(uint32_t c)
{
    if (c < 0x300) {
        return false;
    }
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    bool is_mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                   category == UTF8PROC_CATEGORY_ME;
    bool is_jamo = c >= 0x1160 && c <= 0x11FF;
    return is_mark || is_jamo;
}

static bool changes(enum unicode_form form, uint32_t c)
{
    if (c < 0x80) {
        return false;
    }
    if (c >= 0xAC00 && c <= 0xD7A3) {
        return form == UNICODE_NFD; /* Hangul syllables */
    }
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);
    return p->decomp_seqindex != UINT16_MAX && p->decomp_type == 0;
}

/* Orders a run of marks by their classes, stably, in time proportional to n; `room` is [n]. */
static void order_run(int32_t *points, int32_t *room, size_t n)
{
    size_t starts[256] = {0};
    for (size_t i = 0; i < n; i++) {
        starts[unicode_combining_class((uint32_t)points[i])]++;
    }
    for (size_t class = 0, sum = 0; class < 256; class ++) {
        size_t here = starts[class];
        starts[class] = sum;
        sum += here;
    }
    for (size_t i = 0; i < n; i++) {
        room[starts[unicode_combining_class((uint32_t)points[i])]++] = points[i];
    }
    memcpy(points, room, n * sizeof *points);
}

/* The canonical ordering of points[0..n). */
static void order(int32_t *points, int32_t *room, size_t n)
{
    for (size_t begin = 0, end; begin < n; begin = end) {
        bool is_ordered = true;
        int before = 0;
        for (end = begin; end < n; end++) {
            int class = unicode_combining_class((uint32_t)points[end]);
            if (class == 0) {
                break;
            }
            is_ordered = is_ordered && before <= class;
            before = class;
        }
        if (!is_ordered) {
            order_run(points + begin, room, end - begin);
        }
        end += end < n;
    }
}

/* Appends the segment of `from` that has the bytes [begin, end). */
static void put_segment(struct normal_text *out, struct unicode_form_room *room, enum unicode_form form,
                        const struct normal_text *from, size_t begin, size_t end)
{
    size_t n = 0;
    uint32_t c;
    if (!ARRAY_RESERVE(room->points, room->capacity, 2 * UNICODE_DECOMPOSITION_MAX * (end - begin))) {
        out->failed = true;
        return;
    }
    for (size_t at = begin; at < end;) {
        at += (size_t)utf8_decode(&c, from->bytes + at, end - at);
        uint32_t points[UNICODE_DECOMPOSITION_MAX];
        int n_points = unicode_decompose(points, c);
        for (int i = 0; i < n_points; i++) {
            room->points[n++] = (int32_t)points[i];
        }
    }
    order(room->points, room->points + n, n);
    if (form == UNICODE_NFC) {
        n = (size_t)utf8proc_normalize_utf32(room->points, (utf8proc_ssize_t)n,
                                             UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    }
    size_t same = begin, place = begin; /* what was not changed keeps its places */
    for (size_t i = 0; i < n; i++) {
        char text[UTF8_MAX_BYTES];
        size_t length = (size_t)utf8_write(text, (uint32_t)room->points[i]);
        if (same + length <= end && memcmp(from->bytes + same, text, length) == 0) {
            normal_text_copy(out, from, same, length);
            place = same;
            same += length;
        } else {
            place = same < end ? same : place;
            normal_text_put(out, text, length, normal_text_origin(from, place));
            same = end;
        }
    }
}

/* The bytes of the character at `at`, and the character; U+FFFD also stands for a byte of none. */
static size_t next(uint32_t *c, const struct normal_text *t, size_t at)
{
    return (size_t)utf8_decode(c, t->bytes + at, t->n - at);
}

void unicode_form_apply(struct normal_text *out, struct unicode_form_room *room, enum unicode_form form,
                        const struct normal_text *from)
{
    uint32_t c, after;
    for (size_t at = 0, end; at < from->n; at = end) {
        end = at + next(&c, from, at);
        size_t length = end < from->n ? next(&after, from, end) : 0;
        bool is_long = length > 0 && extends(after);
        if ((!is_long && !changes(form, c)) || c == UNICODE_REPLACEMENT) { /* whose bytes may be any */
            normal_text_copy(out, from, at, end - at);
            continue;
        }
        while (length > 0 && extends(after)) {
            end += length;
            length = end < from->n ? next(&after, from, end) : 0;
        }
        put_segment(out, room, form, from, at, end);
    }
    normal_text_end(out, normal_text_origin(from, from->n));
}
