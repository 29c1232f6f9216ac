/* background_save: a checkpoint written by a thread while training continues.
 *
 * The training thread copies the state into one block that was allocated before the first step, and starts a
 * thread that writes the copy, makes it durable and prunes; so training stops only for one copy of 12 bytes a
 * parameter.  One save is in flight at a time.  The thread uses only its copy and its arguments; the training
 * thread reports the result. */
#ifndef KILN_MODEL_BACKGROUND_SAVE_H
#define KILN_MODEL_BACKGROUND_SAVE_H

#include "dev/exec.h"
#include "model/checkpoint.h"

#include <pthread.h>
#include <stdatomic.h>

/* The result of a save. */
struct background_save_result {
    struct status status;
    int64_t step;
    double stall_s;  /* time for which training stopped, including the wait for an earlier save */
    double wait_s;   /* the part of stall_s for that earlier save */
    int64_t from_ns; /* when writing began */
    int64_t to_ns;   /* when the checkpoint was durable and older ones were pruned */
};

struct background_save {
    void *memory; /* [bytes] the copy */
    size_t bytes;
    char directory[CHECKPOINT_PATH_BYTES];
    int64_t keep_last;
    struct checkpoint_contents contents; /* contents of the copy */
    /* the directory into which one of several ranks writes its part; NULL: there is one rank. Borrowed */
    const char *part_of;
    struct checkpoint_part part; /* files that the rank wrote there */
    struct background_save_result result;
    pthread_t thread;
    bool in_flight;   /* begun, but its result is not taken yet */
    bool threaded;    /* a thread runs, and must be joined */
    atomic_bool done; /* the thread has nothing left to do */
};

/* Bytes of a copy of n_elements elements of each of three flat buffers; the tensors of extras need more. */
size_t background_save_bytes(int64_t n_elements, enum dtype dtype);

/* Allocates the copy's block, `bytes` from background_save_bytes. */
struct status background_save_init(struct background_save *b, size_t bytes);

/* Waits for the save in flight and frees everything; safe on a zeroed struct. */
void background_save_fini(struct background_save *b);

/* Copies the state from the device of `x`, takes c->config, c->tokenizer, c->state and c->owned (freed with
 * the result, or here on failure), and begins to save it as checkpoint_save and checkpoint_dir_prune do;
 * params and vocab must live until the result is taken.  No save may be in flight.  `since_ns` is the time at
 * which training stopped, `wait_s` how long it waited for an earlier save.  STATUS_IO if the disk has no
 * space: then nothing was copied or begun. */
struct status background_save_begin(struct background_save *b, const char *directory, struct exec *x,
                                    const struct checkpoint_contents *c, int64_t keep_last, int64_t since_ns,
                                    double wait_s);

/* Begins a save as background_save_begin does, for one of several ranks: writes only its part, c->part of
 * c->n_parts, into the directory `path`, which is borrowed until the result is taken. Pruning is the
 * caller's. */
struct status background_save_begin_part(struct background_save *b, const char *directory, const char *path,
                                         struct exec *x, const struct checkpoint_contents *c,
                                         int64_t since_ns, double wait_s);

/* Whether the thread has nothing left to do; and waiting until then. */
bool background_save_is_done(const struct background_save *b);
void background_save_wait(struct background_save *b);

/* Frees what the contents of a save own, where none is begun. */
void background_save_release(struct checkpoint_contents *c);

/* True, once, if a save was in flight and has ended; gives its result.  With `wait` it waits for the end. */
bool background_save_take(struct background_save *b, bool wait, struct background_save_result *result);

#endif
