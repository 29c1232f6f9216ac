/* nearest: the word that a user meant who wrote another. */
#ifndef KILN_CORE_NEAREST_H
#define KILN_CORE_NEAREST_H

#include <stddef.h>

/* The closest word so far. */
struct nearest {
    const char *word; /* borrowed; NULL: none is close */
    int distance;
};

/* Takes `word` if it is closer to given[0..n) than the last one, and close enough: one letter in three may be
 * missing, added, changed or swapped with its neighbour (Damerau's distance); '-' and '_' count as equal. */
void nearest_try(struct nearest *best, const char *word, const char *given, size_t n);

/* "; did you mean --max_steps?", or "" if no word is close.  `dashes` stands before the word. */
struct nearest_text {
    char text[128];
};
struct nearest_text nearest_question(const struct nearest *best, const char *dashes);

#endif
