/* request: what serve/packer.h is asked: sequences, the outputs that are wanted of them, and a way to take
 * these.  A caller fills in the first part; the packer keeps the rest.
 *
 * An answer to texts is a job, struct X_job, that begins with its request and owns what the request reads.
 * X_job_make encodes the texts with a scratch of the caller's, in any thread, since it reads of a session
 * only what no batch changes.  Once the packer has ended the request without a failure, X_job_read gives the
 * result, in any thread too, unless the caller gave the place for it.  X_job_fini is safe on a zeroed job and
 * after a failed make.  A job is not moved in between.
 */
#ifndef KILN_SERVE_REQUEST_H
#define KILN_SERVE_REQUEST_H

#include "core/status.h"
#include "core/tensor.h"
#include "data/example_source.h"
#include "nn/model_heads.h"
#include "serve/token_choice.h"

struct request {
    /* The sequences; `add` appends one to a batch, with the tokens that are asked for
     * (text_batch_take_masked). */
    struct example_source source;
    const int64_t *order; /* [source.n] in which they are packed; NULL: as they are */
    int64_t n_asked;      /* most tokens that are asked for in a sequence */
    unsigned outputs;     /* 1 << enum model_output */

    /* The question about row k of the sequence's asked tokens, with MODEL_CHOICES; else NULL. */
    struct token_question (*question)(const void *self, int64_t sequence, int64_t k);

    /* Called once with the outputs of each sequence, in the order of packing: dense tensors in host memory,
     * valid for the call, null for outputs that were not asked for.  A failure ends the request. */
    struct status (*take)(void *self, int64_t sequence, const tensor outputs[MODEL_N_OUTPUTS]);
    void *self;

    /* May be set between steps, by the thread that makes them: no more sequences are packed or taken, and it
     * ends with STATUS_PREEMPTED.  Other threads ask that thread. */
    bool cancelled;

    /* The packer's. */
    int64_t n_packed, n_back; /* sequences that went into batches, and that came back */
    bool ended;               /* the packer does not know it any more */
    struct status status;     /* result, once it has ended */
    struct request *next;
};

#endif
