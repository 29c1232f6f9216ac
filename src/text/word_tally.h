/* word_tally: how often each word occurred in a text of any size, from the counts of many threads, in bounded
 * memory.
 *
 * Threads count words in tables of their own (text/word_counter.h) and hand over each table that is full.  It
 * is sorted; up to WORD_TALLY_MEMORY_WORDS stay in memory, further tables go to a file without a name.
 * Reading merges all of them.  The rule: the words come in the order of their bytes, each once, with its
 * exact count, so neither the number of threads nor the use of the file changes anything. */
#ifndef KILN_TEXT_WORD_TALLY_H
#define KILN_TEXT_WORD_TALLY_H

#include "text/word_counts.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    WORD_TALLY_MAX_BYTES = 512,        /* longest word */
    WORD_TALLY_MEMORY_WORDS = 1 << 20, /* about 50 MB */
};

struct word_tally {
    pthread_mutex_t mutex; /* guards all fields below while threads hand over tables */
    char *beside;          /* the file is made next to this path; NULL: everything stays in memory */
    size_t memory_words;   /* most words in memory */
    int fd;                /* descriptor of the file; -1: there is none */
    uint64_t file_bytes;
    size_t n_in_memory;
    struct tally_part *parts; /* [n_parts] tables, in memory or in the file */
    size_t n_parts, parts_capacity;
};

/* `memory_words` is WORD_TALLY_MEMORY_WORDS, but in tests.  STATUS_MEMORY is its only failure. */
struct status word_tally_init(struct word_tally *t, const char *beside, size_t memory_words);
void word_tally_fini(struct word_tally *t);

/* Forgets all words, and frees the memory and the file that they took. */
void word_tally_empty(struct word_tally *t);

/* Takes the words of a table, which is empty afterwards, whatever is returned.  Any thread may call it.
 * STATUS_IO: the file cannot be written. */
struct status word_tally_take(struct word_tally *t, struct word_counts *table);

/* Reads all words; nothing may be taken meanwhile, but it can be read more than once. */
struct word_tally_reader {
    const struct word_tally *tally;
    struct tally_cursor *cursors; /* [n_parts of the tally] */
    size_t *heap;                 /* [n] the cursors that have not ended; the first has the next word */
    size_t n;
    char word[WORD_TALLY_MAX_BYTES];
    size_t n_bytes;
    int64_t count;
};
struct status word_tally_open(struct word_tally_reader *r, const struct word_tally *t);

/* Sets word, n_bytes and count; *end is true after the last. */
struct status word_tally_next(struct word_tally_reader *r, bool *end);
void word_tally_close(struct word_tally_reader *r);

#endif
