#include "io/bzip2_scan.h"

static const uint64_t BLOCK_MAGIC = 0x314159265359, END_MAGIC = 0x177245385090,
                      MAGIC_MASK = ((uint64_t)1 << BZIP2_MAGIC_BITS) - 1;

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

struct status bzip2_scan_next(struct bzip2_scan *scan, const struct byte_stream *s, uint64_t *bit,
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
