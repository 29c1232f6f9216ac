/* comm_emulated: one rank of many, the others of which are not there: to see what a rank of a large run takes
 * without having one.
 *
 * The rank runs the same code on tensors of the same sizes, and every call returns at once, as if the others
 * were ranks without a sequence:
 *   - a sum is this rank's own: the others give zeros.  So the gradients of a step are the mean over this
 *     rank's own samples;
 *   - so is a maximum, and an agreement;
 *   - of a sum in parts this rank's part is its own;
 *   - in a gathering this rank's own copy stands for what the others have: their rows stay as they are.  So
 *     weights of other shards never change, and a norm has the chunks of this rank alone;
 *   - what another rank broadcasts is what this one has;
 *   - a message to one rank is counted, and one from it is zeros, as are the rows of peers that layers gather
 *     (comm_peers.h).
 * A part (comm_split) is the same rank among fewer; its calls count with those of all ranks, or apart; a part
 * of one rank counts nothing.  Nothing moves, so the kind of device does not matter; the bytes that would
 * have moved are counted. */
#ifndef KILN_DIST_COMM_EMULATED_H
#define KILN_DIST_COMM_EMULATED_H

#include "dist/comm.h"

/* Bytes of tensors that went into calls without a failure.  A tensor's full size counts once, however much of
 * it a ring or tree sends. */
struct comm_traffic {
    int64_t n_calls;
    double reduced_bytes;  /* sums, in parts or not, of fp32 and bf16: gradients */
    double gathered_bytes; /* weights, and sums of chunks for norms */
    double number_bytes;   /* sums of fp64, maxima, broadcasts: numbers, such as losses */
    double message_bytes;  /* messages of this rank to one other */
};

struct comm_emulated {
    int rank, size;
    /* traffic of comm_emulated_rank: what ranks exchange between steps */
    struct comm_traffic numbers;
    struct comm_traffic tensors; /* traffic of comm_emulated_tensors */
    struct comm_traffic slices;  /* traffic between a mesh's slices, where parts count apart */
    struct comm_traffic stages;  /* traffic between a mesh's stages, where parts count apart */
};

/* A communicator of rank e->rank of e->size; a view of `e`.  Its node has no other rank. */
struct comm comm_emulated_rank(struct comm_emulated *e);

/* The communicator for a trainer's tensors, on any device, of the rank of `control` (comm_emulated_rank); a
 * view. */
struct comm comm_emulated_tensors(const struct comm *control);

/* Calls of a part are counted in `t` from now on; those of a part of one rank are not. */
void comm_emulated_count_apart(struct comm *part, struct comm_traffic *t);

#endif
