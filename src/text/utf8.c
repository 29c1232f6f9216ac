#include "text/utf8.h"

#include "text/unicode.h"

#include <stdbool.h>
#include <string.h>

/* Decodes as utf8_decode_any does; *valid distinguishes U+FFFD in the text from U+FFFD for an error. */
static int decode(uint32_t *c, bool *valid, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    *valid = true;
    *c = p[0];
    if (p[0] < 0x80) {
        return 1;
    }
    *valid = false;
    *c = UNICODE_REPLACEMENT;
    if (p[0] < 0xC2 || p[0] > 0xF4) {
        return 1;
    }
    int n_bytes = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    /* The second byte's range excludes overlong forms, surrogates and code points above the last. */
    unsigned char low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    uint32_t code = p[0] & (0x7FU >> n_bytes);
    for (int i = 1; i < n_bytes; i++) {
        if ((size_t)i >= n || p[i] < low || p[i] > high) {
            return i;
        }
        code = code << 6 | (p[i] & 0x3FU);
        low = 0x80;
        high = 0xBF;
    }
    *valid = true;
    *c = code;
    return n_bytes;
}

int utf8_decode_any(uint32_t *c, const char *text, size_t n)
{
    bool valid;
    return decode(c, &valid, text, n);
}

size_t utf8_find_invalid(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint64_t block = UINT64_MAX;
        size_t end = n - at < sizeof block ? n : at + sizeof block;
        if (end - at == sizeof block) {
            memcpy(&block, text + at, sizeof block);
        }
        if ((block & 0x8080808080808080U) == 0) { /* most text is ASCII */
            at = end;
            continue;
        }
        while (at < end) {
            uint32_t c;
            bool valid = true;
            int n_bytes = utf8_decode(&c, text + at, n - at);
            if (c == UNICODE_REPLACEMENT) {
                decode(&c, &valid, text + at, n - at);
            }
            if (!valid) {
                return at;
            }
            at += (size_t)n_bytes;
        }
    }
    return n;
}

size_t utf8_mark_bytes(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

int64_t utf8_count(const char *text, size_t n)
{
    int64_t count = 0;
    uint32_t c;
    for (size_t i = 0; i < n; i += (size_t)utf8_decode(&c, text + i, n - i)) {
        count++;
    }
    return count;
}

int64_t utf8_repair(struct buf *out, const char *text, size_t n)
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

size_t utf8_without_end(const char *text, size_t n)
{
    n -= n > 0 && text[n - 1] == '\n';
    return n - (n > 0 && text[n - 1] == '\r');
}

void utf8_append_excerpt(struct buf *out, const char *text, size_t n, size_t most)
{
    size_t shown = n < most ? n : most;
    while (shown < n && shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80) {
        shown--;
    }
    for (size_t i = 0; i < shown; i++) {
        buf_putc(out, (unsigned char)text[i] < ' ' || text[i] == 0x7F ? ' ' : text[i]);
    }
    buf_puts(out, shown < n ? "..." : "");
}
