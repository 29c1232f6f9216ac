/* background_save: a checkpoint written by a thread while training goes on.
 *
 * The training thread copies the state into one block that was allocated before the first step, and starts a
 * thread that writes the copy, makes it durable and prunes; so training stands still for one copy of 12 bytes
 * a parameter.  One save is in flight at a time.  The thread touches nothing but its copy and what it was
 * given, and what became of it is told by the training thread. */
#ifndef KILN_MODEL_BACKGROUND_SAVE_H
#define KILN_MODEL_BACKGROUND_SAVE_H

#include "dev/exec.h"
#include "model/checkpoint.h"

#include <pthread.h>
#include <stdatomic.h>

/* What became of a save. */
struct background_save_result {
    struct status status;
    int64_t step;
    uint64_t bytes;  /* of the state that was copied */
    double stall_s;  /* in which training stood still: the wait for an earlier save included */
    double wait_s;   /* of it, for that earlier save */
    int64_t from_ns; /* when writing began */
    int64_t to_ns;   /* when the checkpoint was durable and older ones were pruned */
};

struct background_save {
    void *memory; /* [bytes] the copy */
    size_t bytes;
    char directory[CHECKPOINT_PATH_BYTES];
    int64_t keep_last;
    struct checkpoint_contents contents; /* of the copy */
    struct background_save_result result;
    pthread_t thread;
    bool in_flight;   /* begun, and its result not taken */
    bool threaded;    /* by a thread, which must be joined */
    atomic_bool done; /* the thread has nothing left to do */
};

/* Bytes of a copy of three flat buffers of this layout; tensors among the extras come on top. */
size_t background_save_bytes(const struct param_table *params, enum dtype dtype);

/* Allocates the copy's block, `bytes` from background_save_bytes. */
struct status background_save_init(struct background_save *b, size_t bytes);

/* Waits for the save in flight and frees everything; safe on a zeroed struct. */
void background_save_fini(struct background_save *b);

/* Copies the state from the device of `x`, takes c->config, c->tokenizer, c->state and c->owned (freed with the
 * result, or here on failure), and begins to save it as checkpoint_save and checkpoint_dir_prune do; params and vocab must live until the
 * result is taken.  Nothing may be in flight.  `since_ns` is when training stopped for it, `wait_s` what it
 * waited before.  STATUS_IO without room on the disk: nothing was copied, nothing begun. */
struct status background_save_begin(struct background_save *b, const char *directory, struct exec *x,
                                    const struct checkpoint_contents *c, int64_t keep_last, int64_t since_ns,
                                    double wait_s);

/* True if a save was in flight and has ended, which gives its result, once; with `wait` it ends now. */
bool background_save_take(struct background_save *b, bool wait, struct background_save_result *result);

#endif
