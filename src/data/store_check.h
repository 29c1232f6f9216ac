/* store_check: whether the checksums of token stores hold, found out by a thread while the first steps run.
 *
 * The rule: what holds is kept in a file beside the run, with the size, inode and time of last change (ctime) of each
 * file, so that a run that goes on does not read everything again, and a file that was touched since is read again. */
#ifndef KILN_DATA_STORE_CHECK_H
#define KILN_DATA_STORE_CHECK_H

#include "io/token_store.h"

#include <pthread.h>

enum { STORE_CHECK_STORES = 2, STORE_CHECK_PATH_BYTES = 1024 };

struct store_check {
    const struct token_store *stores[STORE_CHECK_STORES]; /* borrowed, open until store_check_close */
    char prefixes[STORE_CHECK_STORES][STORE_CHECK_PATH_BYTES];
    int n;
    char kept[STORE_CHECK_PATH_BYTES]; /* where the result is kept */
    struct buf identity;               /* of all files: what is kept once they hold */
    struct status status;              /* the thread's, after `done`, with the seconds it took */
    double seconds;
    pthread_t thread;
    bool running; /* the thread must be joined */
    atomic_bool stop, done;
};

/* Adds a store to what is going to be checked; `prefix` is that of token_store_open. */
struct status store_check_add(struct store_check *c, const struct token_store *store, const char *prefix);

/* Begins, unless DIRECTORY/.data_checked says that these files hold.  `c` was zeroed, and must not be moved. */
struct status store_check_begin(struct store_check *c, const char *directory);

/* STATUS_DATA if a file is known to be damaged; with `wait` once everything has been read.  Keeps the result. */
struct status store_check_take(struct store_check *c, bool wait);

/* Whether a thread still reads, so that nothing is known yet. */
bool store_check_is_pending(const struct store_check *c);

/* Stops what still runs; safe on a zeroed struct. */
void store_check_close(struct store_check *c);

#endif
