#include "text/charsmap.h"

#include "core/bytes.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 26 };

void charsmap_fini(struct charsmap *c)
{
    free(c->units);
    free(c->texts);
    *c = (struct charsmap){0};
}

/* ---- the trie ---- */

/* The parts of a unit: whether a key ends here, the byte that leads here, the value, where the next lie. */
static bool ends_key(uint32_t unit)
{
    return (unit >> 8 & 1) != 0;
}

static uint32_t label_of(uint32_t unit)
{
    return unit & (UINT32_C(1) << 31 | 0xFF);
}

static uint32_t value_of(uint32_t unit)
{
    return unit & ~(UINT32_C(1) << 31);
}

static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 1U << 9) >> 6);
}

static struct charsmap_match match_of(const struct charsmap *c, size_t n, uint32_t value)
{
    bool is_text = value < c->n_texts && ((unsigned char)c->texts[value] & 0xC0) != 0x80;
    return is_text ? (struct charsmap_match){n, c->texts + value, strlen(c->texts + value)}
                   : (struct charsmap_match){.n = 0};
}

struct charsmap_match charsmap_find(const struct charsmap *c, const char *text, size_t n, bool longest)
{
    struct charsmap_match m = {.n = 0};
    size_t node = c->n_units == 0 ? 0 : offset_of(c->units[0]);
    for (size_t i = 0; i < n && text[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)text[i];
        node ^= byte;
        if (node >= c->n_units || label_of(c->units[node]) != byte) {
            break;
        }
        uint32_t unit = c->units[node];
        node ^= offset_of(unit);
        if (ends_key(unit) && node < c->n_units) {
            struct charsmap_match here = match_of(c, i + 1, value_of(c->units[node]));
            m = here.n > 0 ? here : m;
            if (m.n > 0 && !longest) {
                break;
            }
        }
    }
    return m;
}

/* ---- reading ---- */

static struct status take(struct charsmap *c, const unsigned char *bytes, size_t n, const char *source)
{
    uint32_t trie_bytes = n < 4 ? 0 : bytes_load_u32(bytes);
    FAIL_IF(n < 4 || trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > n - 4, STATUS_DATA,
            "%s: the precompiled table of characters has %zu bytes and a trie of %u: it is cut short or "
            "damaged",
            source, n, trie_bytes);
    c->n_units = trie_bytes / 4;
    c->n_texts = n - 4 - trie_bytes;
    c->units = malloc(trie_bytes);
    c->texts = malloc(c->n_texts + 1);
    FAIL_IF(c->units == NULL || c->texts == NULL, STATUS_MEMORY, "out of memory for a table of characters");
    for (size_t i = 0; i < c->n_units; i++) {
        c->units[i] = bytes_load_u32(bytes + 4 + 4 * i);
    }
    memcpy(c->texts, bytes + 4 + trie_bytes, c->n_texts);
    c->texts[c->n_texts] = '\0';
    size_t invalid = utf8_find_invalid(c->texts, c->n_texts);
    FAIL_IF(invalid < c->n_texts, STATUS_DATA,
            "%s: the precompiled table of characters has a replacement that is not UTF-8, at its byte %zu",
            source, 4 + trie_bytes + invalid);
    return status_ok();
}

/* Whether some key begins with a byte. */
static bool begins_key(const struct charsmap *c, unsigned char byte)
{
    size_t node = offset_of(c->units[0]) ^ byte;
    return node < c->n_units && label_of(c->units[node]) == byte;
}

struct status charsmap_init(struct charsmap *c, const void *bytes, size_t n, const char *source)
{
    *c = (struct charsmap){0};
    FAIL_IF(n > MOST_BYTES, STATUS_DATA,
            "%s: the precompiled table of characters has %zu bytes, more than %d", source, n, MOST_BYTES);
    struct status s = take(c, bytes, n, source);
    if (failed(s)) {
        charsmap_fini(c);
        return s;
    }
    for (unsigned byte = 0; byte < 128; byte++) {
        c->keeps[byte] = byte == 0 || !begins_key(c, (unsigned char)byte);
    }
    return s;
}

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

struct status charsmap_init_base64(struct charsmap *c, const char *text, size_t n, const char *source)
{
    *c = (struct charsmap){0};
    while (n > 0 && text[n - 1] == '=') {
        n--;
    }
    unsigned char *bytes = malloc(n / 4 * 3 + 3);
    FAIL_IF(bytes == NULL, STATUS_MEMORY, "out of memory for a table of characters");
    uint32_t waiting = 0;
    size_t n_bytes = 0;
    int n_bits = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0) {
            free(bytes);
            return status_error(STATUS_DATA,
                                "%s: \"precompiled_charsmap\" is not base64: its byte %zu is no digit",
                                source, i);
        }
        waiting = waiting << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes[n_bytes++] = (unsigned char)(waiting >> n_bits);
        }
    }
    struct status s = charsmap_init(c, bytes, n_bytes, source);
    free(bytes);
    return s;
}
