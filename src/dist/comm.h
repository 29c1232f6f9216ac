/* comm: collectives and messages between ranks.  A communicator is a table of functions and this rank's
 * state.  comm_self is a single rank, comm_wire are ranks that exchange messages, and comm_emulated is one
 * rank that stands for many; dist/world.h finds the ranks of a run.
 *
 * The rules, for every table (docs/decisions/0039_ranks.md):
 *   - All ranks make the same calls in the same order, whatever has happened to them.  A rank that has failed
 *     makes them too: then no data moves, its error goes instead, and sticks in the exec of every rank that
 *     hears of it, with the failing rank's number in front.  So one rank's error ends all of them, and none
 *     waits for another for ever.
 *   - The first error that a rank has heard of stays: every later call returns it.
 *   - Every wait ends at a deadline, with an error that names the ranks that did not come.
 *   - A sum is a tree over the ranks in their order (dist/reduce.h): the same bits on all ranks, at any time,
 *     and whether a rank adds up neighbouring leaves of the tree itself or several ranks have them.
 *
 * A collective has three parts.  Each rank states its call and its status; all come to the same verdict on
 * these; only if that is OK does data move.  The host waits for all ranks in the first part.  It also waits
 * for the data in host memory; on GPUs with NCCL the data moves later, on a stream, and comm_join orders it
 * before the ops that follow.
 *
 * A struct comm is a view that is copied freely.  What it views belongs to whoever opened it (dist/world.h,
 * comm_device_open), who calls comm_leave and then closes it.
 *
 * A part (comm_split) is a communicator of some of the ranks, for which the same rules hold, and these:
 *   - Errors name ranks by their numbers in the world, in every part.
 *   - Any two ranks make the calls that they have in common in the same order, whatever parts these are of.
 *   - Once the world was split, the first error of a rank is that of all: the rank that finds it, in its own
 *     exec or in a call of any part, reports it to all ranks of the world at once, outside of all calls.  So
 *     it also ends waits in parts that the failed rank is not in, and a rank that computes hears of it in its
 *     next call.  If several ranks fail, ranks may have heard of different ones first.
 *   - A rank that is lost is lost to all: every wait, of any part, looks for silent and ended ranks in all of
 *     the world.  Where neither sign shows it, the ranks that wait for the lost one itself reach their
 *     deadline and report it to the others; a rank that waits for one of these may reach its own first, and
 *     then names that one.
 *   - comm_leave of a part with an error is that of the world; in peace it does nothing, since it is the
 *     world that is left.  The part belongs to whoever split it off, who closes it (comm_part_close) before
 *     the communicator that it is a part of. */
#ifndef KILN_DIST_COMM_H
#define KILN_DIST_COMM_H

#include "core/tensor.h"
#include "dev/exec.h"

struct comm;

/* Ranks first, first + stride, ... of a communicator: n of them. */
struct comm_group {
    int first, stride, n;
};

struct comm_call;  /* dist/comm_call.h */
struct comm_stage; /* dist/comm_stage.h */

/* The functions of a kind of communicator; `state` is this rank's. */
struct comm_type {
    const char *name; /* "MPI" */
    /* sums do not follow the rule's order: their bits depend on the number of ranks and where they are */
    bool sums_in_another_order;

    /* Makes one of the calls below, on a dense tensor in the memory of the exec's device; an agreement has no
     * tensor.  `bounds` are those of a sum in parts and a gathering, else NULL.  In a collective the ranks
     * first agree on their calls, in which is each one's status; no data moves if one has failed.  In a
     * message the worse of the two ranks' statuses is returned, and a failed rank sends its error instead of
     * the data. */
    struct status (*call)(void *state, struct exec *x, const struct comm_call *call, tensor t,
                          const int64_t *bounds);

    /* comm_join and comm_check, where collectives return before they have ended; else NULL. */
    struct status (*join)(void *state, struct exec *x);
    struct status (*check)(void *state);

    /* comm_lost; NULL: nobody looks. */
    struct status (*lost)(void *state);

    /* comm_sent; NULL: it is not counted. */
    int64_t (*sent)(const void *state);

    /* comm_leave; NULL: nobody waits. */
    void (*leave)(void *state, struct status why);

    /* comm_split, with this rank in the group; and the end of such a part, NULL: nothing to end. */
    struct status (*split)(const struct comm *whole, const struct comm_group *g, struct comm *part);
    void (*close_part)(struct comm *part);
};

/* The numbers of a communicator's ranks in the world, by which errors name them: rank r has first + r *
 * stride. */
struct comm_numbers {
    int first, stride, world; /* size of the world */
};

struct comm {
    const struct comm_type *type;
    int rank, size;
    struct comm_numbers numbers;
    /* this rank among all ranks of its node, which share its processor's threads and devices; the same in a
     * part */
    int local_rank, n_local;
    /* emulation in which this rank is the only one that is there (comm_emulated.h), borrowed; else NULL */
    struct comm_emulated *emulated;
    /* host memory through which tensors of devices go if the table takes only those of the host, borrowed;
     * else NULL */
    struct comm_stage *stage;
    void *state;
};

/* A single rank.  Every collective leaves its tensor as it is; it can send to nobody. */
struct comm comm_self(void);

/* A barrier: waits for all ranks.  OK if `mine` is OK on all ranks; else all ranks return the same error:
 * that of the lowest rank which failed, or if none did but some were asked to stop, that of the lowest of
 * these. */
struct status comm_agree(const struct comm *c, struct status mine);

/* t = the sum of t over all ranks, in place.  Dense fp32, fp64, or bf16, which is summed in fp32 and rounded
 * once. */
void comm_all_reduce_sum(const struct comm *c, struct exec *x, tensor t);

/* Queues comm_all_reduce_sum: t may be neither read nor written before comm_join, since on a GPU the sum may
 * run at the same time as the ops after it. */
void comm_queue_all_reduce_sum(const struct comm *c, struct exec *x, tensor t);

/* Elements [bounds[r], bounds[r + 1]) of t = their sum over all ranks, with the bits of comm_all_reduce_sum,
 * on rank r only; its other elements then have undefined contents.  bounds [size + 1] as of comm_all_gather,
 * t [n].  Half the bytes of comm_all_reduce_sum.  Queued as that is: t may be neither read nor written before
 * comm_join. */
void comm_queue_reduce_scatter_sum(const struct comm *c, struct exec *x, tensor t, const int64_t *bounds);

/* Makes later ops of the exec run after all collectives so far.  Every other collective does the same at its
 * end. */
void comm_join(const struct comm *c, struct exec *x);

/* Returns an error if a collective of this rank was given up, so that tensors have undefined contents.  Call
 * it after a wait for the exec, before any result is used; other ranks get the error in their next call. */
struct status comm_check(const struct comm *c);

/* t = the largest of each element over all ranks, in place; a NaN is larger than all numbers.  Dense fp32, of
 * magnitudes: the sign is not set. */
void comm_all_reduce_max(const struct comm *c, struct exec *x, tensor t);

/* t = the largest of each element over all ranks, in place, of fp32 of any sign; a NaN may be the largest, or
 * be left out. */
void comm_all_reduce_max_signed(const struct comm *c, struct exec *x, tensor t);

/* Rows [bounds[r], bounds[r + 1]) of the slowest dim of t = those of rank r, for all r.  bounds [size + 1],
 * the same on all ranks, from 0 to t.dims[0]; ranks may have none.  Dense, any dtype. */
void comm_all_gather(const struct comm *c, struct exec *x, tensor t, const int64_t *bounds);

/* t = t of rank `root`.  Dense, any dtype. */
void comm_broadcast(const struct comm *c, struct exec *x, tensor t, int root);

/* Sends t to another rank, and returns when t may be overwritten: it does not wait for the receiver.
 * Messages from one rank to another arrive in order.  Dense, any dtype; both sides must give the same
 * size. */
void comm_send(const struct comm *c, struct exec *x, tensor t, int to);
void comm_receive(const struct comm *c, struct exec *x, tensor t, int from);

/* An error that names a rank which was found to be lost, although no call has noticed.  Any thread may
 * ask. */
struct status comm_lost(const struct comm *c);

/* Bytes of tensors that other ranks have got from this one in calls of this communicator, in any way: what
 * several have got counts once for each.  -1: the table does not count them.  Only the thread that makes the
 * calls may ask. */
int64_t comm_sent(const struct comm *c);

/* Says that this rank makes no more calls; `why` is OK at the end of its work.  Ranks that wait for it now or
 * later fail. */
void comm_leave(const struct comm *c, struct status why);

/* *part = a communicator of ranks first, first + stride, ... of c, n of them, in this order; a part of one
 * rank is comm_self.  All ranks of c call it at once, each with the group that it is in; the groups are
 * disjoint.  All ranks return the same error.  The part is the caller's, until comm_part_close. */
struct status comm_split(const struct comm *c, struct comm *part, int first, int stride, int n);

/* Frees what this rank has of a part; messages that it has sent still arrive.  All ranks of the part call it,
 * after the last call of the part.  Safe on a zeroed struct and on one that is closed. */
void comm_part_close(struct comm *part);

/* Gathers all [size] rows of n bytes, of which this rank has filled its own.  For tables whose tensors are in
 * host memory.  All ranks return the same error. */
struct status comm_share_rows(const struct comm *c, void *all, size_t n);

/* A rank's number in the world. */
int comm_number(const struct comm_numbers *numbers, int rank);

/* Whether a rank is in a group; a part of this rank alone; and the numbers of a group.  For tables. */
bool comm_group_has(const struct comm_group *g, int rank);
struct comm comm_alone(const struct comm *whole);
struct comm_numbers comm_numbers_of(const struct comm *whole, const struct comm_group *g);

/* The worse of the errors of two ranks, `a` being the lower rank; and an error with its rank's number in
 * front, or the rank's number in the world.  For tables. */
struct status comm_worse(struct status a, struct status b);
struct status comm_named(struct status s, int rank, int size);
struct status comm_named_by(struct status s, const struct comm_numbers *numbers, int rank);

/* cut [size + 1]: the bounds of the same parts within elements [begin, end), counted from `begin`. */
void comm_cut_bounds(int64_t *cut, const int64_t *bounds, int size, int64_t begin, int64_t end);

#endif
