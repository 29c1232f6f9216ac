/* node_window: memory that the ranks of a node share, where they meet and compute sums without messages.
 * Through it a rank also sees that another has ended, however it ended.
 *
 * Each rank has a slot for every second meeting that only it writes.  A meeting ends when all ranks have
 * come; what was written before it can be read after it.  A rank that waits spins briefly and then
 * sleeps (futex(2)).  While a rank lives it holds a lock of a byte of the memory's file, which the kernel
 * gives back when the process ends; it is one of the opened file (F_OFD_SETLK of fcntl(2)), so that ranks may
 * be threads of one process too. */
#ifndef KILN_DIST_NODE_WINDOW_H
#define KILN_DIST_NODE_WINDOW_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODE_WINDOW_SLOT_BYTES = 512 << 10 };

struct node_window {
    int rank, size; /* within the node */
    int fd;
    void *memory;        /* NULL: not open */
    uint32_t n_meetings; /* meetings that this rank has come to */
};

/* The first rank creates it by a name that no other run of the machine has, the others then open it, and when
 * all have it the first removes the name.  STATUS_MEMORY: /dev/shm is too small.  Whoever has failed closes
 * it. */
struct status node_window_create(struct node_window *w, const char *name, int size);
struct status node_window_join(struct node_window *w, const char *name, int rank, int size);
void node_window_remove_name(const char *name);
void node_window_close(struct node_window *w);

/* The slot that this rank fills for its next meeting, and the slot that `rank` filled for the last one, which
 * stays until this rank comes to the next [NODE_WINDOW_SLOT_BYTES]. */
void *node_window_next_slot(const struct node_window *w);
const void *node_window_slot(const struct node_window *w, int rank);

/* Comes to the next meeting; then waits until all have come, or a few milliseconds, and returns whether all
 * have come.  `idle_ns`: how long it has waited so far. */
void node_window_come(struct node_window *w);
bool node_window_wait(struct node_window *w, int64_t idle_ns, bool is_crowded);

/* Whether a rank has come to the meeting that this one waits for; and whether its process is there. */
bool node_window_has_come(const struct node_window *w, int rank);
bool node_window_is_alive(const struct node_window *w, int rank);

#endif
