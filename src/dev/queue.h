/* queue: work that is put in order without waiting for any of it: what goes to the device, and recordings of
 * work that is done again and again.  On a host device the first is plain memory and the second does nothing. */
#ifndef KILN_DEV_QUEUE_H
#define KILN_DEV_QUEUE_H

#include "dev/exec.h"

/* Host memory for `bytes` that queue_send takes to `on_device`: on a host device that itself.  NULL after a
 * failure.  To be filled at once; its contents are undefined. */
void *queue_stage(struct exec *x, void *on_device, size_t bytes);

/* Takes the bytes of the last queue_stage to the device, behind the ops before, for the ops after. */
void queue_send(struct exec *x, void *on_device, const void *on_host, size_t bytes);

/* True if the caller must now give the ops of this work, and then call queue_graph_end; false if they were
 * replayed, or after a failure.  The key holds all that the ops' arguments depend on; numbers that change from
 * call to call lie in device memory. */
bool queue_graph_begin(struct exec *x, const void *key, size_t key_bytes);
void queue_graph_end(struct exec *x);

/* A piece of work that nothing given soon depends on: the ops from queue_beside to queue_back begin behind all ops
 * before them, and in a recording of a device that can they run at the same time as those after them.  They have
 * scratch of their own (exec.beside_workspace).
 *
 * queue_join stands before ops that overwrite what a piece reads, or read what it writes: they wait for all pieces
 * but the last `n_left`.  A recording ends with all pieces joined. */
void queue_beside(struct exec *x);
void queue_back(struct exec *x);
void queue_join(struct exec *x, int n_left);

#endif
