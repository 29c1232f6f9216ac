/* packer: fills batches of a model with the sequences of many requests, runs them, and hands each request its
 * rows.
 *
 * The rule: requests are packed in turn, a batch as full as its limits allow; a request with sequences left
 * goes to the end of the queue, so that a request of one sequence does not wait for one of 10,000. Sequences
 * in a batch do not see each other, so requests share batches; a request that is cancelled or fails leaves,
 * and the others continue.  While the device computes a batch, the host takes the rows of the previous one.
 * Only rows that a request asked for are copied from the device.  Nothing allocates after packer_init. */
#ifndef KILN_SERVE_PACKER_H
#define KILN_SERVE_PACKER_H

#include "pass/network.h"
#include "serve/request.h"

/* A sequence in a batch. */
struct packed_sequence {
    struct request *request;
    int64_t sequence;    /* number of the sequence in the request */
    int64_t first_asked; /* first of the sequence's rows among the batch's asked tokens */
};

/* A batch and the sequences in it. */
struct packed_batch {
    struct batch batch;
    struct packed_sequence *sequences; /* [limits.n_sequences] */
};

struct packer {
    struct network *net; /* borrowed */
    struct batch_limits limits;
    int32_t pad_id;
    struct packed_batch turns[2]; /* one is filled while the other runs */
    int turn;                     /* the one to fill */
    struct token_choice choice;   /* choices of tokens, for MODEL_CHOICES */
    int64_t n_tokens;             /* tokens to choose from: all words, or what the caller sets after the
                                   * init */
    /* queue of the requests with sequences left */
    struct request *first;
    /* host copies of a batch's outputs; null where no request may ask for them */
    tensor rows[MODEL_N_OUTPUTS];
};

/* Limits of batches of `n_tokens` tokens, or of one sequence of `longest` tokens if that is more, and of all
 * shorter sequences that fit.  Nothing is asked for. */
struct batch_limits packer_limits(int64_t n_tokens, int64_t longest);

/* The outputs that a network has, 1 << enum model_output each. */
unsigned packer_outputs(const struct network *net);

/* Makes a packer for batches within the limits, which are at most the network's, and for requests of these
 * outputs. `pad_id` fills the tail of a batch.  The network is not used by others between packer_add and the
 * end of the request.  STATUS_MEMORY. */
struct status packer_init(struct packer *p, struct network *net, struct batch_limits limits, int32_t pad_id,
                          unsigned wanted);

/* Safe on a zeroed struct and after a failed init. */
void packer_fini(struct packer *p);

/* Appends a request to the queue.  It must not move until it has ended.  Each of its sequences fits the
 * limits. */
void packer_add(struct packer *p, struct request *r);

/* Packs and starts the next batch, if there is one, and takes the rows of the previous one; *more is false
 * when nothing is left to do. A failure of the device ends all requests and is returned; a failure of one
 * request is its status. */
struct status packer_step(struct packer *p, bool *more);

/* Answers one request: adds it and steps until it has ended.  Returns its status. */
struct status packer_answer(struct packer *p, struct request *r);

/* The status of a request that has ended; if it is STATUS_NUMERIC, with the tensor to blame
 * (pass/culprit.h).  For a command that ends with it: the others would wait for the search. */
struct status packer_explain(struct packer *p, struct status s);

#endif
