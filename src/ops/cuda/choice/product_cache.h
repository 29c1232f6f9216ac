/* product_cache: keeps in files which algorithm won for each product, and which kernel for each call of
 * attention, so that a shape is timed once and its bits stay the same.  Plain C: an algorithm is 64 bytes
 * that only cuBLASLt understands.
 *
 * Choices are read from three places.  The user's shared file saves other runs the timing.  The run's own
 * file, in its output directory, takes precedence over it.  Each checkpoint of the run has a copy, which
 * takes precedence over both files.  So a resumed run computes the same bits, whatever has happened to the
 * files, and wherever the checkpoint was copied.  A file is merged under a lock and replaced as a whole: rows
 * of concurrent runs and of other GPUs are kept (docs/formats.md). */
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
    /* how bias and activation are added: enum product_form; for attention enum launch_attention_kernel */
    int form;
    /* median time when it won; 0: there was no memory to time it, so only the run's file keeps it */
    double micros;
    unsigned char algorithm[PRODUCT_ALGORITHM_BYTES]; /* zeros for attention */
};

struct product_row {
    char key[PRODUCT_KEY_BYTES]; /* machine, tab, shape */
    struct product_choice choice;
    bool used;   /* used by this process, so it belongs in the run's file */
    bool of_run; /* read from the run's file or one of its checkpoints, so it stays in them */
    bool made;   /* made by this process, so it belongs in the shared file */
    bool remade; /* the files' row for it cannot be used */
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

/* The path of the shared file: $XDG_CACHE_HOME/kiln/cublaslt.cache, by default below ~/.cache; "" without a
 * home. */
void product_cache_shared_path(char path[PRODUCT_PATH_BYTES]);

/* Reads the shared file, if `path` is not "" and there is one.  A damaged file or row is logged and
 * skipped. */
void product_cache_open(struct product_cache *c, const char *path);
void product_cache_close(struct product_cache *c);

/* Reads the run's own file as product_cache_open reads the shared one; its rows take precedence. */
void product_cache_follow(struct product_cache *c, const char *path);

/* Reads the copy [n] in a checkpoint of the run, which takes precedence over both files.  A damaged copy or
 * row is logged, with `source` as the copy's name, and skipped. */
void product_cache_take(struct product_cache *c, const void *text, size_t n, const char *source);

/* The bytes of a file with all choices that the run has used, for a checkpoint: without times, so that equal
 * runs write equal bytes.  The caller frees *text, which is NULL if nothing was chosen.  STATUS_MEMORY. */
struct status product_cache_text_of_run(const struct product_cache *c, char **text, size_t *n);

/* The choice for a key, or NULL.  It is valid until the next call. */
const struct product_choice *product_cache_find(struct product_cache *c, const char *key);

/* Keeps a new choice; it replaces one that could not be used.  STATUS_MEMORY, or STATUS_USAGE for a key that
 * is too long, has no tab or holds a newline. */
struct status product_cache_keep(struct product_cache *c, const char *key,
                                 const struct product_choice *choice);

/* Merges new choices into the files.  A file that cannot be written is logged once and not tried again. */
void product_cache_write(struct product_cache *c);

/* Logs a line if the run has rows but none of this machine: they are from another machine, and the run's bits
 * may change here. */
void product_cache_tell_of_machine(const struct product_cache *c, const char *machine, const char *source);

/* Number of rows of a machine whose shape begins with `shape`. */
int64_t product_cache_count(const struct product_cache *c, const char *machine, const char *shape);

#endif
