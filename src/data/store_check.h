/* store_check: checks the checksums of token stores in a thread while the first steps run.
 *
 * The rule: a passed check is saved in the run's directory, with the size, inode and time of last change
 * (ctime) of each file, so that a resumed run does not read everything again, but does read a file that has
 * changed since.  A store without checksums (PREFIX.json) is known by a sample of its files instead: that it
 * is another one is an error, that it was written to a warning.
 *
 * store_overlap says before a run how much of a held-out store stands word for word in the store to train on,
 * so that its loss says less than it seems to. */
#ifndef KILN_DATA_STORE_CHECK_H
#define KILN_DATA_STORE_CHECK_H

#include "io/token_store.h"

#include <pthread.h>

enum {
    STORE_CHECK_PATH_BYTES = 1024,
    STORE_OVERLAP_TOKENS = 32 /* tokens that must be the same in a row: long enough that they are no phrase */
};

struct store_check_item {
    const struct token_store *store; /* borrowed, open until store_check_close */
    char prefix[STORE_CHECK_PATH_BYTES];
};

struct store_check {
    struct store_check_item *items;
    int n;
    bool was_resumed;                  /* the run: its files are those that its directory knows */
    bool allows_other;                 /* files other than those are a warning, no error */
    char kept[STORE_CHECK_PATH_BYTES]; /* where the result is saved */
    struct buf identity;               /* names and states of all files: saved once they pass */
    struct status status;              /* the thread's, after `done`, with the seconds it took */
    double seconds;
    pthread_t thread;
    bool running; /* the thread must be joined */
    atomic_bool stop, done;
};

/* Adds a store to be checked; `prefix` is that of token_store_open.  STATUS_MEMORY. */
struct status store_check_add(struct store_check *c, const struct token_store *store, const char *prefix);

/* Begins, unless DIRECTORY/.data_checked, or for a rank that reads files of its own .data_checked_by_rank_N,
 * says that these files passed.  `c` was zeroed before, and must not be moved. */
struct status store_check_begin(struct store_check *c, const char *directory, int rank);

/* Takes the result.  STATUS_DATA if a file is known to be damaged; with `wait` it first waits until
 * everything has been read. Saves the result. */
struct status store_check_take(struct store_check *c, bool wait);

/* Whether the thread still reads, so that the result is unknown. */
bool store_check_is_pending(const struct store_check *c);

/* Stops the thread; safe on a zeroed struct. */
void store_check_close(struct store_check *c);

/* Sets *share to the fraction of the places of `heldout` at which so many tokens begin that stand in `train`
 * too, of the first million (Karp & Rabin 1987: a hash that is moved on by a token).  0 if it is shorter.
 * STATUS_MEMORY. */
struct status store_overlap(double *share, const struct indexed *heldout, const struct indexed *train);

#endif
