#include "core/hash.h"

#include "core/bytes.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#    include <nmmintrin.h>
#endif

static uint32_t crc32c_by_bits(uint32_t crc, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0x82F63B78U & (0U - (crc & 1U)));
        }
    }
    return crc;
}

#if defined(__x86_64__)
/* SSE 4.2 has instructions for this polynomial. */
__attribute__((target("sse4.2"))) static uint32_t crc32c_by_words(uint32_t crc, const unsigned char *p,
                                                                  size_t n)
{
    uint64_t wide = crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n > 0; p++, n--) {
        crc = _mm_crc32_u8(crc, *p);
    }
    return crc;
}
#endif

uint32_t hash_crc32c(uint32_t crc, const void *bytes, size_t n)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        return ~crc32c_by_words(crc, bytes, n);
    }
#endif
    return ~crc32c_by_bits(crc, bytes, n);
}

void hash_crc32_init(struct hash_crc32_tables *tables)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
        }
        tables->t[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++) {
            uint32_t before = tables->t[k - 1][i];
            tables->t[k][i] = (before >> 8) ^ tables->t[0][before & 0xFF];
        }
    }
}

uint32_t hash_crc32(const struct hash_crc32_tables *tables, uint32_t crc, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    crc = ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word = bytes_load_u64(p) ^ crc;
        crc = 0;
        for (int k = 0; k < 8; k++) {
            crc ^= tables->t[7 - k][word >> 8 * k & 0xFF];
        }
    }
    for (; n > 0; p++, n--) {
        crc = (crc >> 8) ^ tables->t[0][(crc ^ *p) & 0xFF];
    }
    return ~crc;
}

static const uint32_t MASK_DELTA = 0xA282EAD8U;

uint32_t hash_mask_crc(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}

uint32_t hash_unmask_crc(uint32_t masked)
{
    uint32_t rotated = masked - MASK_DELTA;
    return rotated << 15 | rotated >> 17;
}

uint64_t hash_fnv1a(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xCBF29CE484222325U;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001B3U;
    }
    return h;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0xBF58476D1CE4E5B9);
    return h ^ h >> 29; /* the product carries upwards only */
}

/* The last n bytes, fewer than 8, as a word; some of them twice, so that there is no loop. */
static uint64_t load_rest(const unsigned char *p, size_t n)
{
    uint32_t first, last;
    if (n < sizeof first) {
        return (uint64_t)p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    }
    memcpy(&first, p, sizeof first);
    memcpy(&last, p + n - sizeof last, sizeof last);
    return first | (uint64_t)last << 32;
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = n * UINT64_C(0x9E3779B97F4A7C15), word;
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        h = mix(h, word);
    }
    return n > 0 ? mix(h, load_rest(p, n)) : h;
}
