#include "io/bzip2_block.h"

#include <bzlib.h>
#include <stdlib.h>
#include <string.h>

/* Room to begin with: a block of text is up to 900,000 bytes, and somewhat more where bytes repeat. */
enum { FIRST_CAPACITY = 1 << 20, HEADER_BYTES = 4, END_BYTES = 10 };

static const uint64_t BLOCK_MAGIC = 0x314159265359, END_MAGIC = 0x177245385090,
                      MAGIC_MASK = ((uint64_t)1 << BZIP2_MAGIC_BITS) - 1;

/* Copies bits [begin, end) of the file to to[0..], and a 0 to the rest of the last byte. */
static struct status read_bits(unsigned char *to, const struct byte_stream *s, uint64_t begin, uint64_t end)
{
    uint64_t first = begin / 8, limit = (end + 7) / 8;
    int shift = (int)(begin % 8);
    size_t n = (size_t)(limit - first);
    TRY(byte_stream_read_file(s, to, n, first));
    for (size_t i = 0; i < n && shift > 0; i++) {
        unsigned next = i + 1 < n ? to[i + 1] : 0;
        to[i] = (unsigned char)(to[i] << shift | next >> (8 - shift));
    }
    return status_ok();
}

/* Writes the lowest n bits of `value` at bit `at` of `to`. */
static void put_bits(unsigned char *to, uint64_t at, uint64_t value, int n)
{
    for (int i = 0; i < n; i++, at++) {
        unsigned bit = (unsigned)(value >> (n - 1 - i)) & 1, place = 7 - (unsigned)(at % 8);
        to[at / 8] = (unsigned char)((to[at / 8] & ~(1u << place)) | bit << place);
    }
}

static uint32_t read_crc(const unsigned char *block)
{
    const unsigned char *b = block + BZIP2_MAGIC_BITS / 8;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static struct status grow(struct bzip2_bytes *out)
{
    if (out->n < out->capacity) {
        return status_ok();
    }
    size_t capacity = out->capacity == 0 ? FIRST_CAPACITY : 2 * out->capacity;
    unsigned char *data = realloc(out->data, capacity);
    FAIL_IF(data == NULL, STATUS_MEMORY, "out of memory for an unpacked block of %zu bytes", capacity);
    out->data = data;
    out->capacity = capacity;
    return status_ok();
}

/* Unpacks a complete stream; *good is whether it was one.  libbz2 does not say that it leaves `stream` as it
 * is. */
static struct status unpack_stream(struct bzip2_bytes *out, const char *stream, size_t n, bool *good)
{
    bz_stream z = {.next_in = (char *)stream, .avail_in = (unsigned)n};
    FAIL_IF(BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK, STATUS_MEMORY, "out of memory to unpack a bzip2 block");
    struct status status = status_ok();
    int result = BZ_OK;
    while (result == BZ_OK && !failed(status)) {
        status = grow(out);
        size_t room = out->capacity - out->n;
        z.next_out = (char *)out->data + out->n;
        z.avail_out = (unsigned)room;
        result = failed(status) ? BZ_MEM_ERROR : BZ2_bzDecompress(&z);
        out->n += room - z.avail_out;
        if (result == BZ_OK && z.avail_in == 0 && z.avail_out > 0) {
            break; /* it needs more than there is */
        }
    }
    BZ2_bzDecompressEnd(&z);
    *good = result == BZ_STREAM_END && z.avail_in == 0;
    return result == BZ_MEM_ERROR && !failed(status)
               ? status_error(STATUS_MEMORY, "out of memory to unpack a bzip2 block")
               : status;
}

struct status bzip2_block_unpack(struct bzip2_bytes *out, const struct byte_stream *s, uint64_t begin,
                                 uint64_t end, bool *good, uint32_t *crc)
{
    enum { LEAST_BITS = BZIP2_MAGIC_BITS + 32 };
    uint64_t n_bits = end - begin;
    size_t n_before = out->n;
    *good = false;
    if (n_bits < LEAST_BITS || n_bits > (uint64_t)8 * BZIP2_BLOCK_FILE_BYTES) {
        return status_ok();
    }
    unsigned char *stream = malloc(HEADER_BYTES + (size_t)n_bits / 8 + 2 + END_BYTES);
    FAIL_IF(stream == NULL, STATUS_MEMORY, "out of memory for a bzip2 block of %s", s->path);
    unsigned char *block = stream + HEADER_BYTES;
    memcpy(stream, "BZh9", HEADER_BYTES);
    struct status status = read_bits(block, s, begin, end);
    if (!failed(status)) {
        *crc = read_crc(block);
        put_bits(block, n_bits, END_MAGIC, BZIP2_MAGIC_BITS);
        put_bits(block, n_bits + BZIP2_MAGIC_BITS, *crc, 32);
        uint64_t n = n_bits + BZIP2_MAGIC_BITS + 32;
        put_bits(block, n, 0, (int)((8 - n % 8) % 8));
        status = unpack_stream(out, (const char *)stream, HEADER_BYTES + (size_t)((n + 7) / 8), good);
    }
    free(stream);
    if (!*good) {
        out->n = n_before;
    }
    return status;
}

/* ---- where blocks begin and end ---- */

/* Bit s of shifts[b]: a magic may end s bits before the end of a window of 8 bytes whose last but one is b.
 * Only 16 of 256 bytes have any, so the search costs little more than reading. */
struct shifts {
    unsigned char of[256];
};

static struct shifts find_shifts(void)
{
    struct shifts shifts = {{0}};
    for (int s = 0; s < 8; s++) {
        shifts.of[BLOCK_MAGIC >> (8 - s) & 0xff] |= (unsigned char)(1 << s);
        shifts.of[END_MAGIC >> (8 - s) & 0xff] |= (unsigned char)(1 << s);
    }
    return shifts;
}

/* The number of bits, 0 to 7, between the end of a magic and the end of the window, the largest if there are
 * two; -1: there is none. */
static int find_in_window(uint64_t window, unsigned maybe, enum bzip2_mark *mark)
{
    for (int s = 7; s >= 0; s--) {
        uint64_t bits = window >> s & MAGIC_MASK;
        if ((maybe >> s & 1) != 0 && (bits == BLOCK_MAGIC || bits == END_MAGIC)) {
            *mark = bits == BLOCK_MAGIC ? BZIP2_BLOCK : BZIP2_STREAM_END;
            return s;
        }
    }
    return -1;
}

/* Makes the byte at `at` of the file one of scan->bytes. */
static struct status fill(struct bzip2_scan *scan, const struct byte_stream *s, uint64_t at)
{
    if (at >= scan->at && at < scan->at + scan->n) {
        return status_ok();
    }
    uint64_t left = s->file_bytes - at;
    scan->at = at;
    scan->n = 0;
    size_t n = left < BZIP2_SCAN_BYTES ? (size_t)left : BZIP2_SCAN_BYTES;
    TRY(byte_stream_read_file(s, scan->bytes, n, at));
    scan->n = n;
    return status_ok();
}

struct status bzip2_block_next(struct bzip2_scan *scan, const struct byte_stream *s, uint64_t *bit,
                               enum bzip2_mark *mark)
{
    const struct shifts shifts = find_shifts();
    uint64_t window = 0, begin = *bit;
    for (uint64_t at = begin / 8; at < s->file_bytes;) {
        TRY(fill(scan, s, at));
        for (size_t i = (size_t)(at - scan->at); i < scan->n; i++, at++) {
            unsigned maybe = shifts.of[window & 0xff]; /* the last but one byte of the window with the next */
            window = window << 8 | scan->bytes[i];
            int shift = maybe == 0 ? -1 : find_in_window(window, maybe, mark);
            if (shift < 0) {
                continue;
            }
            uint64_t end = 8 * (at + 1) - (uint64_t)shift;
            if (end >= begin + BZIP2_MAGIC_BITS) {
                *bit = end - BZIP2_MAGIC_BITS;
                return status_ok();
            }
        }
    }
    *bit = 8 * s->file_bytes;
    *mark = BZIP2_FILE_END;
    return status_ok();
}
