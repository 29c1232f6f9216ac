#include "data/squad_text.h"

#include "text/utf8.h"

#include <float.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether str.split() separates at this code point. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

void squad_text_join_words(struct buf *out, const char *text, size_t n)
{
    bool in_word = false, any = false;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        size_t n_bytes = (size_t)utf8_decode(&c, text + at, n - at);
        bool space = is_space(c);
        if (!space) {
            if (!in_word && any) {
                buf_putc(out, ' ');
            }
            buf_append(out, text + at, n_bytes);
            any = true;
        }
        in_word = !space;
        at += n_bytes;
    }
}

int64_t squad_text_count_chars(const char *text, size_t n)
{
    int64_t n_chars = 0;
    for (size_t at = 0; at < n; n_chars++) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, text + at, n - at);
    }
    return n_chars;
}

void squad_text_json_string(struct buf *out, const char *text, size_t n)
{
    static const char short_escapes[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    buf_putc(out, '"');
    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, text + at, n - at);
        const char *escape = NULL;
        for (const char *p = short_escapes; *p != '\0' && escape == NULL; p += 2) {
            escape = (uint32_t)(unsigned char)*p == c ? p + 1 : NULL;
        }
        if (escape != NULL) {
            buf_printf(out, "\\%c", *escape);
        } else if (c >= ' ' && c <= '~') {
            buf_putc(out, (char)c);
        } else if (c < 0x10000) {
            buf_printf(out, "\\u%04x", c);
        } else { /* a UTF-16 pair */
            buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
        }
    }
    buf_putc(out, '"');
}

void squad_text_json_real(struct buf *out, double value)
{
    /* 17 digits always read back as the same number; fewer are written if they do too.  Below 15 digits only
     * trailing zeros can be dropped, except near 0, where numbers are sparse. */
    char text[32];
    for (int n_digits = value < DBL_MIN && value > -DBL_MIN ? 1 : 15; n_digits <= 17; n_digits++) {
        snprintf(text, sizeof text, "%.*e", n_digits - 1, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    char *exponent_text = strchr(text, 'e');
    int exponent = (int)strtol(exponent_text + 1, NULL, 10);
    char digits[24];
    int n = 0;
    for (const char *p = text; p < exponent_text; p++) {
        if (*p >= '0' && *p <= '9') {
            digits[n++] = *p;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    if (text[0] == '-') {
        buf_putc(out, '-');
    }
    if (exponent < -4 || exponent >= 16) { /* where Python switches to an exponent */
        buf_printf(out, n > 1 ? "%.1s.%.*s%s" : "%.1s%.*s%s", digits, n - 1, digits + 1, exponent_text);
        return;
    }
    if (exponent < 0) {
        buf_printf(out, "0.%.*s%.*s", -exponent - 1, "000", n, digits);
        return;
    }
    for (int i = 0; i < (n > exponent + 2 ? n : exponent + 2); i++) {
        buf_puts(out, i == exponent + 1 ? "." : "");
        buf_putc(out, i < n ? digits[i] : '0');
    }
}
