/* repeats: how much of a text is repeated lines.
 *
 * A model memorises what it reads a thousand times, and its loss looks good for the wrong reason.
 * Lines are known by a 64-bit hash; when the table is full, those seen least often are forgotten (after the
 * lossy counting of Manku and Motwani 2002), so memory is fixed, and the counts are exact for small texts and
 * lower bounds for large ones. */
#ifndef KILN_CORPUS_REPEATS_H
#define KILN_CORPUS_REPEATS_H

#include "core/buf.h"
#include "core/bytes.h"

#include <stddef.h>
#include <stdint.h>

enum { REPEATS_SLOTS = 1 << 20, REPEATS_EXAMPLE_BYTES = 80 };

struct repeats_slot {
    uint64_t hash; /* 0: empty */
    uint32_t count;
};

struct repeats {
    struct repeats_slot *slots; /* [REPEATS_SLOTS], open addressing */
    int64_t n_used;
    uint64_t n_bytes;
    uint64_t n_repeated;                     /* bytes of lines that are equal to an earlier one */
    uint64_t most;                           /* repeated bytes of the line that accounts for the most */
    uint32_t most_count;                     /* occurrences of that line */
    char example[REPEATS_EXAMPLE_BYTES + 1]; /* beginning of the line that accounts for the most */
};

/* STATUS_MEMORY, 16 MiB. */
struct status repeats_init(struct repeats *r);
void repeats_fini(struct repeats *r);

/* The hash that identifies a line. */
uint64_t repeats_hash(const char *line, size_t n);

/* Counts a line of n bytes of UTF-8, by its hash; returns how often it occurred, this time included, as far
 * as is remembered. */
uint32_t repeats_add(struct repeats *r, uint64_t hash, const char *line, size_t n);

/* Appends all that is remembered; and the way back, into an empty one.  STATUS_DATA: it is damaged. */
void repeats_save(const struct repeats *r, struct buf *out);
struct status repeats_load(struct repeats *r, struct span *in);

/* Warns if repeats are at least a twentieth of the text. */
void repeats_tell(const struct repeats *r);

#endif
