/* word_cache: from the bytes of a run of text to the ids of its tokens, for one thread.
 *
 * On natural text few words make most of the text (Zipf's law), so nearly all runs are found here.  The rule:
 * a lookup returns the ids that encoding the run gives, whatever was cached before: an entry holds the
 * complete run and is compared with it.  The size is fixed; a new entry replaces an older one with the same
 * hash.  Of a pair, the first entry was found last: a new one replaces the second, and one that is found
 * there becomes the first.  So words that occur once do not drive out those that are found, and nearly all
 * that is found is first.
 *
 * Two tables, both of pairs of entries: short ones for runs of up to 16 bytes and up to 3 ids, long ones for
 * up to 32 bytes and 7 ids.  A run is kept with zeros after it.  A short entry with more ids than it holds
 * says that they are in a long one.  Runs that differ only in NUL bytes at their end have the same ids,
 * because the tokenizer drops NUL; so an empty entry, whose run is zeros, is right too: it has no ids. */
#ifndef KILN_TEXT_WORD_CACHE_H
#define KILN_TEXT_WORD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    WORD_CACHE_SHORT_BYTES = 16,
    WORD_CACHE_SHORT_IDS = 3,
    WORD_CACHE_LONG_BYTES = 32,
    WORD_CACHE_LONG_IDS = 7,
};

struct word_cache_short {
    uint64_t run[2];
    int32_t ids[WORD_CACHE_SHORT_IDS];
    uint32_t n_ids;
};

struct word_cache_long {
    uint64_t run[4];
    int32_t ids[WORD_CACHE_LONG_IDS];
    uint32_t n_ids;
};

struct word_cache {
    struct word_cache_short *shorts; /* [2^bits] pairs; a pair is a cache line */
    struct word_cache_long *longs;   /* [2^(bits - 2)] pairs */
    int bits;
};

/* A size: 2^16 pairs of 64 bytes, 4 MiB, and 2^14 of 128, 2 MiB, for words; four times that for the pieces of
 * byte-level BPE: docs/decisions/0052_word_cache.md. */
enum { WORD_CACHE_WORD_BITS = 16, WORD_CACHE_PIECE_BITS = 18 };

/* False if memory runs out.  Fini is safe on a zeroed struct. */
bool word_cache_init(struct word_cache *c, int bits);
void word_cache_fini(struct word_cache *c);

/* Remembers a run of n bytes, at most WORD_CACHE_LONG_BYTES, and its ids, if they are not too many. */
void word_cache_add(struct word_cache *c, const char *run, size_t n, const int32_t *ids, size_t n_ids);

/* The ids of a run of n bytes, at most WORD_CACHE_LONG_BYTES, and their number; NULL if they are not known.
 * No byte after the run is read. */
const int32_t *word_cache_find(struct word_cache *c, const char *run, size_t n, size_t *n_ids);

/* The functions below are in the header because they run for each token. */

/* [32] -1 in the first 16 bytes: 16 bytes from 16 - n on keep the first n bytes of a run. */
extern const uint8_t word_cache_keep[2 * WORD_CACHE_SHORT_BYTES];

/* The hash of a run, of which `part` are 16 bytes; its highest bits are the best (multiplicative hashing:
 * Knuth, The Art of Computer Programming, vol. 3, section 6.4). */
static inline uint64_t word_cache_hash(const uint64_t part[2])
{
    return part[0] * UINT64_C(0xD6E8FEB86659FD93) + (part[1] ^ part[1] >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline bool word_cache_is_short(const struct word_cache_short *e, const uint64_t run[2])
{
    return ((e->run[0] ^ run[0]) | (e->run[1] ^ run[1])) == 0;
}

/* The run's entry if it is the second of the pair, where the first one is then; else NULL. */
const struct word_cache_short *word_cache_find_second(struct word_cache_short pair[2], const uint64_t run[2]);

/* A short run and the pair of entries that may have it.  Who looks up several runs makes their probes first,
 * and prefetches the pairs: waiting for memory is most of the time of a lookup. */
struct word_cache_probe {
    uint64_t run[2];
    struct word_cache_short *pair;
};

static inline struct word_cache_short *word_cache_pair(const struct word_cache *c, const uint64_t run[2])
{
    return c->shorts + 2 * (word_cache_hash(run) >> (64 - c->bits));
}

/* The probe for a run of n bytes, 1 to WORD_CACHE_SHORT_BYTES; WORD_CACHE_SHORT_BYTES of text are read. */
static inline struct word_cache_probe word_cache_probe(const struct word_cache *c, const char *text, size_t n)
{
    struct word_cache_probe p;
    uint64_t keep[2];
    memcpy(p.run, text, sizeof p.run);
    memcpy(keep, word_cache_keep + WORD_CACHE_SHORT_BYTES - n, sizeof keep);
    p.run[0] &= keep[0];
    p.run[1] &= keep[1];
    p.pair = word_cache_pair(c, p.run);
    return p;
}

/* The entry of a probe's run, or NULL. */
static inline const struct word_cache_short *word_cache_find_probe(const struct word_cache_probe *p)
{
    return word_cache_is_short(p->pair, p->run) ? p->pair : word_cache_find_second(p->pair, p->run);
}

/* The entry of a run of n bytes, 1 to WORD_CACHE_SHORT_BYTES, or NULL; WORD_CACHE_SHORT_BYTES of text are
 * read. */
static inline const struct word_cache_short *word_cache_find_short(struct word_cache *c, const char *text,
                                                                   size_t n)
{
    struct word_cache_probe p = word_cache_probe(c, text, n);
    return word_cache_find_probe(&p);
}

#endif
