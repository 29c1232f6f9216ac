#include "core/base64.h"

#include <string.h>

bool base64_decode(struct buf *out, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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
