/* append_file: a file that grows over several runs.
 *
 * The rule: what counts is a mark, a length and a checksum that the caller keeps elsewhere.  Bytes before the
 * mark are kept, and compared with its checksum when the file is opened again; bytes after it are those of a
 * run that died, and are dropped. */
#ifndef KILN_IO_APPEND_FILE_H
#define KILN_IO_APPEND_FILE_H

#include "core/buf.h"
#include "io/file.h"

/* A CRC-32C of every MiB of a file, so that damage can be located. */
enum { BLOCK_SUMS_BYTES = 1 << 20 };

struct block_sums {
    struct buf crcs; /* u32 each: of the complete blocks, and after block_sums_end also of the last one */
    uint32_t crc;    /* CRC-32C of the block that is being filled */
    size_t filled;   /* bytes of that block so far */
};

/* Adds the next bytes of the file.  Failure is sticky: buf_status of `crcs`. */
void block_sums_add(struct block_sums *b, const void *bytes, size_t n);

/* Closes the last block. */
void block_sums_end(struct block_sums *b);
void block_sums_fini(struct block_sums *b);

/* Blocks of a file of n bytes. */
size_t block_sums_count(size_t n);

struct append_mark {
    uint64_t n_bytes;
    uint32_t crc; /* CRC-32C of them */
};

struct append_file {
    char path[FILE_PATH_BYTES];
    int fd;
    unsigned char *buffer; /* NULL: not open */
    size_t buffered;
    /* length and CRC-32C of the bytes that left the buffer: after append_file_sync, of all bytes */
    struct append_mark mark;
    struct block_sums sums; /* sums of the same bytes */
    struct status status;   /* the first failure */
};

/* Opens a file for the bytes after the mark; {0} makes a new file or empties an old one.  STATUS_DATA: the
 * file is shorter than the mark, or its bytes are others; STATUS_IO. */
struct status append_file_open(struct append_file *f, const char *path, struct append_mark from);
void append_file_put(struct append_file *f, const void *bytes, size_t n);

/* Makes all bytes durable, and returns the first failure so far. */
struct status append_file_sync(struct append_file *f);

/* Closes without writing out what is buffered.  Safe on a zeroed struct and a second time. */
void append_file_close(struct append_file *f);

/* Calls visit(context, bytes, n) for the first n_bytes of a file, in order, in pieces that are a multiple of
 * 8 bytes but for the last.  STATUS_IO if it is shorter. */
struct status append_file_read(const char *path, uint64_t n_bytes,
                               void (*visit)(void *context, const unsigned char *bytes, size_t n),
                               void *context);

#endif
