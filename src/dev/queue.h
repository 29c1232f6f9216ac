/* queue: work that is queued without waiting for it: copies to the device, and recordings of repeated work.
 * On a host device the copy is plain memory and the recording does nothing. */
#ifndef KILN_DEV_QUEUE_H
#define KILN_DEV_QUEUE_H

#include "dev/exec.h"

/* Host memory for `bytes` that queue_send copies to `on_device`; on a host device it is `on_device` itself.
 * NULL after a failure.  Fill all of it at once: its contents are undefined. */
void *queue_stage(struct exec *x, void *on_device, size_t bytes);

/* Copies the bytes of the last queue_stage to the device, after the ops before it and before those after
 * it. */
void queue_send(struct exec *x, void *on_device, const void *on_host, size_t bytes);

/* True if the caller must now give the ops of this work and then call queue_graph_end; false if they were
 * replayed, or after a failure.  The key holds everything the ops' arguments depend on; numbers that change
 * from call to call are in device memory. */
bool queue_graph_begin(struct exec *x, const void *key, size_t key_bytes);
void queue_graph_end(struct exec *x);

/* Work in segments, for a host that queues other work between them; the key says where they end.  While ops
 * are given, queue_graph_cut ends a segment: what was given so far is queued, with all pieces that run
 * beside, and no op may be given before queue_graph_resume.  When queue_graph_begin has returned false
 * without a failure, the first segment was replayed, and each queue_graph_replay replays the next. */
void queue_graph_cut(struct exec *x);
void queue_graph_resume(struct exec *x);
void queue_graph_replay(struct exec *x);

/* Calls function(self, x, t) after the ops before it and before those after it: for work that the host must
 * queue by itself, whatever the exec's status is, such as a collective of ranks.  A recording is cut there,
 * and its replay makes the same call: `self` and the memory of t must be there then.  The callers of
 * queue_graph_begin and queue_graph_replay need not know of it: both continue to the next queue_graph_cut of
 * their own, or to the end. */
typedef void queue_function(void *self, struct exec *x, tensor t);
void queue_call(struct exec *x, queue_function *function, void *self, tensor t);

/* A piece of work that the next ops do not depend on.  The ops between queue_beside and queue_back run after
 * all ops before them.  In a recording, on a device that can, they run concurrently with the ops after them,
 * with their own scratch (exec.beside_workspace).
 *
 * Call queue_join before ops that overwrite what a piece reads, or read what it writes: they wait for all
 * pieces except the last `n_left`.  A recording ends with all pieces joined; queue_graph_cut joins them. */
void queue_beside(struct exec *x);
void queue_back(struct exec *x);
void queue_join(struct exec *x, int n_left);

#endif
