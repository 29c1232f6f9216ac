#include "text/jinja_text.h"

#include "text/letter_case.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <string.h>

bool jinja_text_is_space(uint32_t c)
{
    return unicode_is_white(c) || (c >= 0x1C && c <= 0x1F);
}

static bool is_in(const char *c, size_t n, const char *set, size_t n_set)
{
    uint32_t code;
    if (set != NULL) {
        return jinja_text_find(set, n_set, c, n) < n_set;
    }
    utf8_decode(&code, c, n);
    return jinja_text_is_space(code);
}

size_t jinja_text_left(const char *text, size_t n, const char *set, size_t n_set)
{
    size_t at = 0;
    while (at < n) {
        uint32_t c;
        size_t bytes = (size_t)utf8_decode(&c, text + at, n - at);
        if (!is_in(text + at, bytes, set, n_set)) {
            break;
        }
        at += bytes;
    }
    return at;
}

/* The offset of the last character. */
static size_t last(const char *text, size_t n)
{
    do {
        n--;
    } while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80);
    return n;
}

size_t jinja_text_right(const char *text, size_t n, const char *set, size_t n_set)
{
    size_t end = n;
    while (end > 0 && is_in(text + last(text, end), end - last(text, end), set, n_set)) {
        end = last(text, end);
    }
    return n - end;
}

int64_t jinja_text_length(const char *text, size_t n)
{
    int64_t length = 0;
    for (size_t i = 0; i < n; i++) {
        length += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return length;
}

size_t jinja_text_at(const char *text, size_t n, int64_t character)
{
    size_t at = 0;
    for (uint32_t c; character > 0 && at < n; character--) {
        at += (size_t)utf8_decode(&c, text + at, n - at);
    }
    return at;
}

size_t jinja_text_find(const char *text, size_t n, const char *part, size_t n_part)
{
    for (size_t at = 0; n_part > 0 && at + n_part <= n; at++) {
        const char *found = memchr(text + at, part[0], n - n_part + 1 - at);
        if (found == NULL) {
            return n;
        }
        at = (size_t)(found - text);
        if (memcmp(found, part, n_part) == 0) {
            return at;
        }
    }
    return n_part == 0 ? 0 : n;
}

void jinja_text_case(struct buf *out, const char *text, size_t n, enum jinja_case to)
{
    bool is_inside = false; /* inside a word; JINJA_CAPITALIZED: inside the text */
    for (size_t at = 0; at < n;) {
        uint32_t c;
        char bytes[UTF8_MAX_BYTES];
        at += (size_t)utf8_decode(&c, text + at, n - at);
        bool has_case = letter_case_has(c);
        c = to == JINJA_UPPER || (to > JINJA_UPPER && !is_inside) ? letter_case_upper(c)
                                                                  : letter_case_lower(c);
        is_inside = to == JINJA_CAPITALIZED || has_case;
        buf_append(out, bytes, (size_t)utf8_write(bytes, c));
    }
}
