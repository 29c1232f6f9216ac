#include "corpus/html_entities.h"

#include "text/unicode.h"
#include "text/utf8.h"

#include <stdbool.h>
#include <string.h>

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The character of a name, up to a space or a NUL; NULL if there is none. */
static const char *find(const char *name, size_t n)
{
    const char *low = html_entities[(unsigned char)name[0]], *high = low == NULL ? NULL : low + strlen(low);
    while (low < high) {
        const char *middle = low + (high - low) / 2;
        while (middle > low && middle[-1] != ' ') {
            middle--;
        }
        int order = strncmp(middle, name, n);
        if (order == 0 && middle[n] == '=') {
            return middle + n + 1;
        }
        low = order < 0 ? middle + strcspn(middle, " ") + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

/* The value of a digit; 16 if the character is no digit in this base. */
static uint32_t digit(char c, uint32_t base)
{
    uint32_t value = 16;
    if (c >= '0' && c <= '9') {
        value = (uint32_t)(c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        value = (uint32_t)((c | 0x20) - 'a' + 10);
    }
    return value < base ? value : 16;
}

static bool is_character(uint32_t c)
{
    bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7f && c < 0xa0);
    return !control && c <= UNICODE_MAX && (c < 0xd800 || c > 0xdfff);
}

static size_t decode_number(char *out, size_t *out_bytes, const char *text, size_t n)
{
    uint32_t base = n > 2 && (text[2] | 0x20) == 'x' ? 16 : 10;
    size_t first = base == 16 ? 3 : 2, at = first;
    uint32_t c = 0;
    for (; at < n && digit(text[at], base) < 16; at++) {
        c = c > UNICODE_MAX ? c : c * base + digit(text[at], base);
    }
    if (at == first || at == n || text[at] != ';') {
        return 0;
    }
    *out_bytes = is_character(c) ? (size_t)utf8_write(out, c) : 0;
    return at + 1;
}

size_t html_entities_decode(char out[HTML_ENTITY_TEXT_BYTES], size_t *out_bytes, const char *text, size_t n)
{
    if (n > 1 && text[1] == '#') {
        return decode_number(out, out_bytes, text, n < HTML_ENTITY_NAME_BYTES ? n : HTML_ENTITY_NAME_BYTES);
    }
    size_t end = 1;
    while (end < n && end <= HTML_ENTITY_NAME_BYTES && is_letter_or_digit(text[end])) {
        end++;
    }
    if (end == 1 || end == n || text[end] != ';') {
        return 0;
    }
    const char *character = find(text + 1, end - 1);
    if (character == NULL) {
        return 0;
    }
    *out_bytes = strcspn(character, " ");
    memcpy(out, character, *out_bytes);
    return end + 1;
}
