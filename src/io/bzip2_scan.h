/* bzip2_scan: where the blocks of a bzip2 file begin and end, found without unpacking them.
 *
 * A block begins with the 48 bits 0x314159265359 at any bit of the file; a stream ends with 0x177245385090.
 * By chance such bits are also inside a block, about once in 10^14 bits; whoever unpacks a block that fails
 * must try it with the end of the next one (bzip2_stream.c). */
#ifndef KILN_IO_BZIP2_SCAN_H
#define KILN_IO_BZIP2_SCAN_H

#include "io/byte_stream.h"

enum { BZIP2_MAGIC_BITS = 48, BZIP2_SCAN_BYTES = 1 << 17 };

enum bzip2_mark { BZIP2_BLOCK, BZIP2_STREAM_END, BZIP2_FILE_END };

struct bzip2_scan {
    unsigned char bytes[BZIP2_SCAN_BYTES]; /* the first n are those of the file at `at` */
    uint64_t at;
    size_t n;
};

/* Sets *bit to where the next mark at or behind *bit begins, or to the file's end.  STATUS_IO. */
struct status bzip2_scan_next(struct bzip2_scan *scan, const struct byte_stream *s, uint64_t *bit,
                              enum bzip2_mark *mark);

#endif
