/* digest: MD5 and SHA-256, block by block, as their standards write them down. */
#include "core/digest.h"

#include "core/bytes.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_BYTES = 8 };

/* floor(2^32 |sin(i + 1)|), RFC 1321 section 3.4 */
static const uint32_t md5_constants[64] = {
    0xD76AA478, 0xE8C7B756, 0x242070DB, 0xC1BDCEEE, 0xF57C0FAF, 0x4787C62A, 0xA8304613, 0xFD469501,
    0x698098D8, 0x8B44F7AF, 0xFFFF5BB1, 0x895CD7BE, 0x6B901122, 0xFD987193, 0xA679438E, 0x49B40821,
    0xF61E2562, 0xC040B340, 0x265E5A51, 0xE9B6C7AA, 0xD62F105D, 0x02441453, 0xD8A1E681, 0xE7D3FBC8,
    0x21E1CDE6, 0xC33707D6, 0xF4D50D87, 0x455A14ED, 0xA9E3E905, 0xFCEFA3F8, 0x676F02D9, 0x8D2A4C8A,
    0xFFFA3942, 0x8771F681, 0x6D9D6122, 0xFDE5380C, 0xA4BEEA44, 0x4BDECFA9, 0xF6BB4B60, 0xBEBFBC70,
    0x289B7EC6, 0xEAA127FA, 0xD4EF3085, 0x04881D05, 0xD9D4D039, 0xE6DB99E5, 0x1FA27CF8, 0xC4AC5665,
    0xF4292244, 0x432AFF97, 0xAB9423A7, 0xFC93A039, 0x655B59C3, 0x8F0CCC92, 0xFFEFF47D, 0x85845DD1,
    0x6FA87E4F, 0xFE2CE6E0, 0xA3014314, 0x4E0811A1, 0xF7537E82, 0xBD3AF235, 0x2AD7D2BB, 0xEB86D391,
};

/* the first 32 bits of the fractions of the cube roots of the first 64 primes, FIPS 180-4 section 4.2.2 */
static const uint32_t sha256_constants[64] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
};

static uint32_t rotate_left(uint32_t x, unsigned n)
{
    return (x << n) | (x >> (32 - n));
}

static uint32_t read_big_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* RFC 1321 section 3.4: four rounds of 16 operations. */
static void md5_block(uint32_t h[8], const unsigned char *block)
{
    static const unsigned char shifts[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], word[16];
    for (int i = 0; i < 16; i++) {
        word[i] = bytes_load_u32(block + 4 * i);
    }
    for (int i = 0; i < 64; i++) {
        int round = i / 16;
        uint32_t f = round == 0   ? (b & c) | (~b & d)
                     : round == 1 ? (d & b) | (~d & c)
                     : round == 2 ? b ^ c ^ d
                                  : c ^ (b | ~d);
        int k = round == 0 ? i : round == 1 ? (5 * i + 1) % 16 : round == 2 ? (3 * i + 5) % 16 : 7 * i % 16;
        uint32_t next = b + rotate_left(a + f + md5_constants[i] + word[k], shifts[round][i % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
}

/* FIPS 180-4 section 6.2.2. */
static void sha256_block(uint32_t h[8], const unsigned char *block)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) {
        w[i] = read_big_u32(block + 4 * i);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        uint32_t s0 = rotate_left(x, 25) ^ rotate_left(x, 14) ^ (x >> 3);
        uint32_t s1 = rotate_left(y, 15) ^ rotate_left(y, 13) ^ (y >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate_left(v[4], 26) ^ rotate_left(v[4], 21) ^ rotate_left(v[4], 7);
        uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + sha256_constants[i] + w[i];
        uint32_t s0 = rotate_left(v[0], 30) ^ rotate_left(v[0], 19) ^ rotate_left(v[0], 10);
        uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) {
        h[i] += v[i];
    }
}

static void put_block(struct digest *d, const unsigned char *block)
{
    if (d->kind == DIGEST_MD5) {
        md5_block(d->h, block);
    } else {
        sha256_block(d->h, block);
    }
}

void digest_init(struct digest *d, enum digest_kind kind)
{
    static const uint32_t md5_start[8] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
    static const uint32_t sha256_start[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                             0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
    *d = (struct digest){.kind = kind};
    memcpy(d->h, kind == DIGEST_MD5 ? md5_start : sha256_start, sizeof d->h);
}

void digest_put(struct digest *d, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t held = d->n_bytes % BLOCK;
    d->n_bytes += n;
    if (held > 0) {
        size_t part = n < BLOCK - held ? n : BLOCK - held;
        memcpy(d->block + held, p, part);
        p += part;
        n -= part;
        if (held + part < BLOCK) {
            return;
        }
        put_block(d, d->block);
    }
    for (; n >= BLOCK; p += BLOCK, n -= BLOCK) {
        put_block(d, p);
    }
    if (n > 0) {
        memcpy(d->block, p, n);
    }
}

/* The standards' padding; h[] is the digest then. */
static void end_blocks(struct digest *d)
{
    static const unsigned char padding[BLOCK] = {0x80};
    unsigned char length[LENGTH_BYTES];
    uint64_t bits = d->n_bytes * 8;
    bool is_md5 = d->kind == DIGEST_MD5;
    for (int i = 0; i < LENGTH_BYTES; i++) { /* MD5 is little-endian, SHA-256 big-endian */
        length[i] = (unsigned char)(bits >> 8 * (is_md5 ? i : LENGTH_BYTES - 1 - i));
    }
    size_t held = d->n_bytes % BLOCK, room = BLOCK - LENGTH_BYTES;
    digest_put(d, padding, held < room ? room - held : BLOCK + room - held);
    digest_put(d, length, sizeof length);
}

/* Byte i of the digest: MD5 is little-endian, SHA-256 big-endian. */
static unsigned char byte_of(const struct digest *d, int i)
{
    return (unsigned char)(d->h[i / 4] >> 8 * (d->kind == DIGEST_MD5 ? i % 4 : 3 - i % 4));
}

void digest_end(struct digest *d, struct digest_text *hex)
{
    int n = d->kind == DIGEST_MD5 ? 16 : 32;
    end_blocks(d);
    for (int i = 0; i < n; i++) {
        static const char digits[] = "0123456789abcdef";
        unsigned byte = byte_of(d, i);
        hex->text[2 * i] = digits[byte >> 4];
        hex->text[2 * i + 1] = digits[byte & 15];
    }
    hex->text[2 * n] = '\0';
}

/* out = SHA-256(key xor pad, bytes): the inner and the outer half of HMAC. */
static void hash_half(unsigned char out[DIGEST_KEYED_BYTES], const unsigned char key[DIGEST_KEY_BYTES],
                      unsigned char pad, const void *bytes, size_t n)
{
    struct digest d;
    unsigned char block[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        block[i] = (unsigned char)((i < DIGEST_KEY_BYTES ? key[i] : 0) ^ pad);
    }
    digest_init(&d, DIGEST_SHA256);
    digest_put(&d, block, sizeof block);
    digest_put(&d, bytes, n);
    end_blocks(&d);
    for (int i = 0; i < DIGEST_KEYED_BYTES; i++) {
        out[i] = byte_of(&d, i);
    }
}

void digest_keyed(unsigned char out[DIGEST_KEYED_BYTES], const unsigned char key[DIGEST_KEY_BYTES],
                  const void *bytes, size_t n)
{
    unsigned char inner[DIGEST_KEYED_BYTES];
    hash_half(inner, key, 0x36, bytes, n);
    hash_half(out, key, 0x5C, inner, sizeof inner);
}

bool digest_kind_of(enum digest_kind *kind, const char *hex)
{
    size_t n = strspn(hex, "0123456789abcdefABCDEF");
    *kind = n == 32 ? DIGEST_MD5 : DIGEST_SHA256;
    return hex[n] == '\0' && (n == 32 || n == 64);
}

const char *digest_name(enum digest_kind kind)
{
    return kind == DIGEST_MD5 ? "MD5" : "SHA-256";
}
