/* bzip2_block: finds the blocks of a bzip2 file, and unpacks one, by libbz2.
 *
 * libbz2 unpacks streams that begin at a byte.  So the bits of the block are moved to a byte's beginning,
 * between the header and the end of a stream of one block, whose check sum is the block's own. */
#ifndef KILN_IO_BZIP2_BLOCK_H
#define KILN_IO_BZIP2_BLOCK_H

#include "io/byte_stream.h"

/* More than a block of 900,000 bytes takes in the file, even in codes of 20 bits. */
enum { BZIP2_BLOCK_FILE_BYTES = 3 << 20 };

struct bzip2_bytes {
    unsigned char *data; /* [n], of `capacity`; free'd by the owner */
    size_t n, capacity;
};

/* Appends the unpacked block in the file's bits [begin, end) to `out`; *good is false if it is damaged, or if
 * these bits are not a block.  `crc`: its check sum, valid if it is good.  STATUS_IO, STATUS_MEMORY. */
struct status bzip2_block_unpack(struct bzip2_bytes *out, const struct byte_stream *s, uint64_t begin,
                                 uint64_t end, bool *good, uint32_t *crc);

/* ---- where blocks begin and end, found without unpacking them ----
 *
 * A block begins with the 48 bits 0x314159265359 at any bit of the file; a stream ends with 0x177245385090.
 * By chance such bits are also inside a block, about once in 10^14 bits; whoever unpacks a block that fails
 * must try it with the end of the next one (bzip2_stream.c). */

enum { BZIP2_MAGIC_BITS = 48, BZIP2_SCAN_BYTES = 1 << 17 };

enum bzip2_mark { BZIP2_BLOCK, BZIP2_STREAM_END, BZIP2_FILE_END };

struct bzip2_scan {
    unsigned char bytes[BZIP2_SCAN_BYTES]; /* the first n are those of the file at `at` */
    uint64_t at;
    size_t n;
};

/* Sets *bit to where the next mark at or after *bit begins, or to the file's end.  STATUS_IO. */
struct status bzip2_block_next(struct bzip2_scan *scan, const struct byte_stream *s, uint64_t *bit,
                               enum bzip2_mark *mark);

#endif
