#include "core/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool base64_decode(struct buf *out, const char *text)
{
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char *p = text; *p != '\0' && *p != '='; p++) {
        const char *digit = strchr(digits, *p == '-' ? '+' : *p == '_' ? '/' : *p);
        if (digit == NULL) {
            return false;
        }
        bits = bits << 6 | (uint32_t)(digit - digits);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            buf_putc(out, (char)(bits >> n_bits & 0xff));
        }
    }
    return true;
}

void base64_encode(struct buf *out, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    char *to = buf_extend(out, (n + 2) / 3 * 4);
    for (size_t i = 0; to != NULL && i < n; i += 3) {
        size_t n_group = n - i < 3 ? n - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++) {
            bits = bits << 8 | (k < n_group ? p[i + k] : 0U);
        }
        for (size_t k = 0; k < 4; k++) {
            *to++ = k <= n_group ? digits[bits >> (18 - 6 * k) & 63] : '=';
        }
    }
}
