/* wordpiece_merge: words with counts, each a sequence of pieces, of which the most frequent adjacent pair is
 * merged repeatedly: for WordPiece, and for byte-level BPE, whose pieces have no prefix.
 *
 * The rule: the counts of all pairs are exact after every merge, and only words that contain the merged pair
 * are visited.  The heap may hold outdated entries: an entry is valid only if its count equals the pair's. */
#ifndef KILN_TEXT_WORDPIECE_MERGE_H
#define KILN_TEXT_WORDPIECE_MERGE_H

#include "text/word_counts.h"

/* 16 bytes: a large text has tens of millions of distinct words. */
struct merge_word {
    int64_t count;
    uint32_t start_low; /* offset in symbols */
    uint16_t start_high;
    uint16_t length; /* pieces of the word; shrinks */
};

struct wordpiece_merge {
    struct word_counts pieces; /* the index of a piece is its id */
    int32_t *symbols;          /* ids of the pieces of all words, end to end */
    size_t n_symbols, symbols_capacity;
    size_t n_live; /* symbols that belong to a word; merges leave gaps between words */
    struct merge_word *words;
    size_t n_words, words_capacity;
    struct merge_pair *pairs;
    size_t n_pairs, pairs_capacity;
    uint32_t *slots; /* [n_slots] hash table: index into pairs plus 1; 0: empty */
    size_t n_slots;
    struct merge_entry *heap; /* the largest count first, then the lowest ids */
    size_t heap_n, heap_capacity;
    uint32_t *touched; /* pairs with the newest piece, whose counts grew */
    size_t n_touched, touched_capacity;
    int64_t min_frequency;
    size_t prefix_bytes;               /* prefix of a piece that continues a word: 2 for "##", 0 for none */
    int32_t newest_left, newest_right; /* the pair that was merged last */
    bool out_of_memory;                /* sticky: check it at the end */
};

/* A zeroed struct is empty. */
void wordpiece_merge_fini(struct wordpiece_merge *m);

/* The id of a piece, which is added if it is new; -1 if memory runs out. */
int32_t wordpiece_merge_piece(struct wordpiece_merge *m, const char *text, size_t n);

/* Appends a piece to the word being put together. */
void wordpiece_merge_symbol(struct wordpiece_merge *m, int32_t id);

/* Ends that word, which occurred `count` times. */
void wordpiece_merge_end_word(struct wordpiece_merge *m, int64_t count);

/* Counts the pairs of all words; call it once, after the last of them. */
void wordpiece_merge_begin(struct wordpiece_merge *m, int64_t min_frequency);

/* Merges the most frequent pair; false if no pair left occurs min_frequency times. */
bool wordpiece_merge_next(struct wordpiece_merge *m);

#endif
