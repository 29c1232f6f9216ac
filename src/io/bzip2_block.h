/* bzip2_block: unpacks one block of a bzip2 file, by libbz2.
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

#endif
