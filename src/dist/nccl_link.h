/* nccl_link: a communicator of NCCL's with the stream that its collectives run on, and a thread that watches
 * them.  A collective that has begun and does not end by the deadline, a rank that is lost, or an error that
 * NCCL finds by itself, ends the communicator: then work that waits for its stream continues, and the error
 * stays.  All collectives of a link are given by one thread. */
#ifndef KILN_DIST_NCCL_LINK_H
#define KILN_DIST_NCCL_LINK_H

#include "dist/comm_call.h"
#include "dist/nccl_library.h"

struct nccl_link_config {
    /* communicator of the same ranks on the host; a rank that it knows to be lost ends the link */
    const struct comm *control;
    double deadline_s;
    const char *record; /* the file for the flight recorder after an error, or NULL; copied */
};

struct nccl_link;

/* Opens this rank's link of the communicator of `id`; all ranks call it at once.  Collectives are queued
 * between the work of the exec `x`, whose device has streams.  STATUS_INTERNAL, STATUS_MEMORY. */
struct status nccl_link_open(struct nccl_link **link, const struct nccl_library *library, struct nccl_id id,
                             const struct exec *x, const struct nccl_link_config *config);

/* Waits, at most until the deadline, for collectives to end, unless there was an error.  Safe on NULL. */
void nccl_link_close(struct nccl_link *link);

/* Calls the library, which queues a collective on the stream; returns its ncclResult_t. */
typedef int nccl_collective(const struct nccl_library *library, void *comm, void *stream,
                            const void *arguments);

/* Queues a collective after the exec's work so far. */
struct status nccl_link_queue(struct nccl_link *link, const struct comm_call *call, nccl_collective *queue,
                              const void *arguments);

/* Makes the exec's later work run after all collectives so far. */
struct status nccl_link_join(struct nccl_link *link);

/* The first error of the link, which stays. */
struct status nccl_link_check(struct nccl_link *link);

/* Ends the communicator for a reason of the caller's, unless it has ended. */
void nccl_link_end(struct nccl_link *link, struct status why);

/* Whether `x` is the exec of the link. */
bool nccl_link_is_of(const struct nccl_link *link, const struct exec *x);

#endif
