/* sorted_table: reads a file of sorted keys and values as LevelDB and TensorFlow write it (LevelDB,
 * doc/table_format.md).
 *
 * A table consists of blocks of entries, an index block that lists them, and a footer that points to the
 * index.  A key is stored without the prefix that it shares with the previous key.  Blocks may be compressed
 * with Snappy; each has a checksum.
 *
 * The rule: blocks do not overlap, so that their decompressed size is limited by the size of the file, and
 * keys ascend. */
#ifndef KILN_IO_SORTED_TABLE_H
#define KILN_IO_SORTED_TABLE_H

#include "io/bump.h"

#include <stdint.h>

/* Limits of keys and expanded blocks together, and of a key, which in a checkpoint is the name of a tensor;
 * sizes of a block's trailer and of the footer. */
enum {
    SORTED_TABLE_MAX_BYTES = 256 << 20,
    SORTED_TABLE_KEY_BYTES = 4096,
    SORTED_TABLE_TRAILER_BYTES = 5,
    SORTED_TABLE_FOOTER_BYTES = 48
};

/* How a block is compressed: the byte after it. */
enum sorted_table_compression { SORTED_TABLE_PLAIN = 0, SORTED_TABLE_SNAPPY = 1 };

struct sorted_table_entry {
    const char *key; /* [key_bytes] and a NUL */
    size_t key_bytes;
    const unsigned char *value; /* [value_bytes] */
    size_t value_bytes;
};

struct sorted_table {
    struct bump memory;                 /* owns keys, expanded blocks and the list */
    struct sorted_table_entry *entries; /* [n], keys ascending */
    size_t n, capacity;
};

/* Reads the complete table.  The caller keeps the bytes until the close; `source` names them in messages. */
struct status sorted_table_parse(struct sorted_table *t, const void *bytes, size_t n, const char *source);

/* Safe on a zeroed struct and after a failed parse. */
void sorted_table_close(struct sorted_table *t);

/* Snappy (google/snappy, format_description.txt); docs/decisions/0043_foreign_checkpoints.md says why kiln
 * does not use the library. */

/* The decompressed size; false if it is missing, or more than `n` bytes can decompress to. */
bool snappy_length(size_t *length, const void *bytes, size_t n);

/* Decompresses into `out`, which has exactly that size; false if the input is damaged. */
bool snappy_expand(void *out, size_t length, const void *bytes, size_t n);

#endif
