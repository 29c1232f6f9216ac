/* http_workers: threads that run calls.  The calls of one line run one after another, in the order in which
 * they were added; those of different lines run at once. */
#ifndef KILN_HTTP_HTTP_WORKERS_H
#define KILN_HTTP_HTTP_WORKERS_H

#include "core/status.h"

#include <stdbool.h>

struct http_workers;
struct http_worker_call;

struct http_line {
    /* The workers need the line no more for one of its calls, which has run. */
    void (*release)(struct http_line *line);

    struct http_worker_call *first, *last; /* calls that have not begun; NULL at first */
    bool is_busy;                          /* a worker has it, or will */
    struct http_line *next;                /* next line that waits for a worker */
};

/* Starts the threads.  STATUS_MEMORY, STATUS_IO. */
struct status http_workers_create(struct http_workers **w, int n_threads);

/* Runs f(self) in a worker, soon.  False: the workers have stopped, and nothing was added. */
bool http_workers_call(struct http_workers *w, struct http_line *line, void (*f)(void *self), void *self);

/* Runs what was added, and ends the threads.  Safe on NULL. */
void http_workers_stop(struct http_workers *w);

/* Stops and frees them.  Safe on NULL. */
void http_workers_destroy(struct http_workers *w);

#endif
