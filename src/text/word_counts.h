/* word_counts: how often each byte string occurred.  Strings are indexed in the order of their first
 * occurrence. */
#ifndef KILN_TEXT_WORD_COUNTS_H
#define KILN_TEXT_WORD_COUNTS_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct word_count {
    size_t start; /* offset in text */
    uint32_t n_bytes;
    uint32_t hash;
    int64_t count;
};

struct word_counts {
    struct word_count *words; /* [n] */
    size_t n, capacity;
    char *text; /* [text_bytes] the strings end to end */
    size_t text_bytes, text_capacity;
    uint32_t *slots; /* [n_slots] index into words plus 1; 0: empty */
    size_t n_slots;  /* a power of two */
};

/* A zeroed struct is empty. */
void word_counts_fini(struct word_counts *w);

/* Forgets all strings and keeps the memory. */
void word_counts_clear(struct word_counts *w);

/* Adds `count` to a string and returns its index; false if memory runs out, and then nothing has changed. */
bool word_counts_add(struct word_counts *w, size_t *index, const char *text, size_t n, int64_t count);

/* The count of a string; 0 if it is not there. */
int64_t word_counts_find(const struct word_counts *w, const char *text, size_t n);

#endif
