/* hash_set: hashes that were seen, of one width, up to a limit after which no more are remembered; and a
 * file of them, in their order, from which another run continues. */
#ifndef KILN_CORPUS_HASH_SET_H
#define KILN_CORPUS_HASH_SET_H

#include "io/append_file.h"

#include <stdbool.h>

struct hash_set {
    size_t width, most;   /* bytes of a hash, at least 8; the limit */
    unsigned char *slots; /* [capacity, width] open addressing; zeros: empty */
    size_t n, capacity;
    struct append_file file;
    bool has_file;
};

/* `path` NULL: no file; else it holds what an earlier run remembered up to the mark, {0}: nothing.
 * STATUS_MEMORY, STATUS_IO, STATUS_DATA.  Close is safe on a zeroed struct and after a failed open. */
struct status hash_set_open(struct hash_set *s, size_t width, size_t most, const char *path,
                            struct append_mark from);
void hash_set_close(struct hash_set *s);

/* Whether the hash is remembered. */
bool hash_set_has(const struct hash_set *s, const void *hash);

/* Remembers a hash that is not all zeros, unless the set is full; *is_new is false if it was there. */
struct status hash_set_add(struct hash_set *s, const void *hash, bool *is_new);

/* Bytes of memory for n hashes. */
size_t hash_set_bytes(size_t width, size_t most, double n);

#endif
