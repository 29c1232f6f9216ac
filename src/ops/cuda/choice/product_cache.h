/* product_cache: which algorithm won for which product, and which kernel for which attention, kept in files so that a
 * shape is timed once and its bits stay the same.  Plain C: an algorithm is 64 bytes that only cuBLASLt understands.
 *
 * There are two files.  The shared one belongs to the user: what any run has timed, other runs need not time
 * again.  The run's own lies in its output directory and goes before the shared one, and what it holds is in each of the
 * run's checkpoints and goes before both, so that a run that is resumed computes the bits that it would have computed,
 * whatever has become of the others, and wherever the checkpoint was taken.  A file is merged
 * under a lock and replaced as a whole: rows of concurrent runs and of other GPUs are kept (docs/formats.md). */
#ifndef KILN_OPS_CUDA_CHOICE_PRODUCT_CACHE_H
#define KILN_OPS_CUDA_CHOICE_PRODUCT_CACHE_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PRODUCT_ALGORITHM_BYTES = 64,
    PRODUCT_KEY_BYTES = 320,
    PRODUCT_PATH_BYTES = 1024,
};

struct product_choice {
    int form; /* how bias and activation are added: enum product_form; of attention: enum launch_attention_kernel */
    double
        micros; /* median time when it won; 0: there was no memory to time it, and only the run itself keeps it */
    unsigned char algorithm[PRODUCT_ALGORITHM_BYTES]; /* zeros for attention */
};

struct product_row {
    char key[PRODUCT_KEY_BYTES]; /* machine, tab, shape */
    struct product_choice choice;
    bool used;   /* by this process: the run's file wants it */
    bool of_run; /* from the run's file or one of its checkpoints: they go on wanting it */
    bool made;   /* by this process: the shared file wants it */
    bool remade; /* what the files say of it cannot be used */
};

/* Rows in the order of their keys. */
struct product_rows {
    struct product_row *rows; /* [n] owned */
    int64_t n, capacity;
};

struct product_cache {
    struct product_rows rows;
    char shared_path[PRODUCT_PATH_BYTES]; /* "": none */
    char run_path[PRODUCT_PATH_BYTES];    /* "": none */
    bool shared_changed, run_changed;     /* there are rows to be written */
};

/* Where the shared file lies: $XDG_CACHE_HOME/kiln/cublaslt.cache, ~/.cache without it; "" without a home. */
void product_cache_shared_path(char path[PRODUCT_PATH_BYTES]);

/* Reads the shared file, if `path` is not "" and there is one.  A damaged file or row is told in a line of the log
 * and left out. */
void product_cache_open(struct product_cache *c, const char *path);
void product_cache_close(struct product_cache *c);

/* The same for the run's own file, whose rows go before those of the shared one. */
void product_cache_follow(struct product_cache *c, const char *path);

/* The same for a file's bytes, as a checkpoint of the run holds them; they go before both files.  `source` names them in
 * the log. */
void product_cache_take(struct product_cache *c, const void *text, size_t n, const char *source);

/* The bytes of a file with all that the run has used, for a checkpoint: without times, so that equal runs write equal
 * bytes.  *text is the caller's to free, NULL if nothing was chosen.  STATUS_MEMORY. */
struct status product_cache_text_of_run(const struct product_cache *c, char **text, size_t *n);

/* The choice for a key, or NULL.  It is valid until the next call. */
const struct product_choice *product_cache_find(struct product_cache *c, const char *key);

/* Keeps a new choice, in place of one that could not be used.  STATUS_MEMORY, or STATUS_USAGE for a key that is
 * too long, has no tab or holds a newline. */
struct status product_cache_keep(struct product_cache *c, const char *key,
                                 const struct product_choice *choice);

/* Merges what is new into the files.  A file that cannot be written is told once in the log and left alone
 * from then on. */
void product_cache_write(struct product_cache *c);

/* Says in a line of the log if the run has rows, and none of this machine: they were made on another, and its bits may
 * change here. */
void product_cache_tell_of_machine(const struct product_cache *c, const char *machine, const char *source);

/* Number of rows of a machine whose shape begins with `shape`. */
int64_t product_cache_count(const struct product_cache *c, const char *machine, const char *shape);

#endif
