/* nccl_link: a communicator of NCCL's with the stream that its collectives run on, and a thread that watches
 * them.  A collective that has begun and does not end by the deadline, a rank that is lost, or an error that
 * NCCL finds by itself, ends the communicator: then what waits for its stream goes on, and the error stays.
 * All collectives of a link are given by one thread. */
#ifndef KILN_DIST_NCCL_LINK_H
#define KILN_DIST_NCCL_LINK_H

#include "dist/comm_call.h"
#include "dist/nccl_library.h"

struct nccl_link_config {
    const struct comm *control; /* of the same ranks; one that it knows to be lost ends the communicator */
    double deadline_s;
    const char *record; /* the file for the flight recorder after an error, or NULL; copied */
};

struct nccl_link;

/* A rank of the communicator of `id`: all ranks call it at once.  `x` is the exec whose work collectives are
 * put between; its device has streams.  STATUS_INTERNAL, STATUS_MEMORY. */
struct status nccl_link_open(struct nccl_link **link, const struct nccl_library *library, struct nccl_id id,
                             const struct exec *x, const struct nccl_link_config *config);

/* Waits, at most until the deadline, for collectives to end, unless there was an error.  Safe on NULL. */
void nccl_link_close(struct nccl_link *link);

/* What is to be queued on the stream by the library; its result is returned. */
typedef int nccl_collective(const struct nccl_library *library, void *comm, void *stream,
                            const void *arguments);

/* Queues a collective behind the exec's work so far. */
struct status nccl_link_queue(struct nccl_link *link, const struct comm_call *call, nccl_collective *queue,
                              const void *arguments);

/* The exec's work from here on runs behind all collectives so far. */
struct status nccl_link_join(struct nccl_link *link);

/* The first error of the link, which stays. */
struct status nccl_link_check(struct nccl_link *link);

/* Ends the communicator for a reason of the caller's, unless it has ended. */
void nccl_link_end(struct nccl_link *link, struct status why);

/* The communicator's own exec. */
bool nccl_link_is_of(const struct nccl_link *link, const struct exec *x);

#endif
