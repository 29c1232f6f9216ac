/* words: the words of a command line that is being built; it grows, and ends with a NULL as execv wants.
 * Failure is sticky, as in core/buf.h: the code that builds it checks once, with words_status. */
#ifndef KILN_CORE_WORDS_H
#define KILN_CORE_WORDS_H

#include "core/buf.h"
#include "core/status.h"

struct words {
    const char **list; /* [n] and a NULL, in any order: a parser may move them; NULL while empty */
    char **owned;      /* [n] and a NULL: the same words, in the order in which they were added */
    int n, capacity;
    bool failed;
};

/* Frees the words; safe on a zeroed struct. */
void words_fini(struct words *w);

/* Appends a printf-formatted word. */
void words_add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends copies of the words up to a NULL. */
void words_add_list(struct words *w, const char *const *list);

/* STATUS_MEMORY if any append ran out of memory. */
struct status words_status(const struct words *w);

/* Whether one of the words, NAME=VALUE, sets the variable of `entry`, which is NAME=VALUE too. */
bool words_set_variable(const struct words *w, const char *entry);

/* Appends the words to a text as a shell would read them back: a word with other characters than those of
 * paths and flags is quoted. */
void words_print(struct buf *out, const struct words *w);

#endif
