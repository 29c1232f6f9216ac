/* ngram_beside: what counts of n-grams lose on held-out samples, the baseline of a decoder, found in a thread
 * while the first steps run.
 *
 * The rule: training does not depend on it.  That there is no baseline is a warning. */
#ifndef KILN_TASK_NGRAM_BESIDE_H
#define KILN_TASK_NGRAM_BESIDE_H

#include "task/pretrain_inputs.h"

#include <pthread.h>
#include <stdatomic.h>

struct ngram_beside {
    struct ngram_score score; /* n_samples 0: there is none */
    struct status status;     /* of the thread, as the score is, once `done` */
    const struct pretrain_inputs *in;
    const struct pretrain_options *options;
    int64_t n_samples;
    pthread_t thread;
    bool running; /* the thread must be joined */
    atomic_bool done;
};

/* Begins, where the kind of run has such counts: on the first n_samples of in->heldout.  `b` was zeroed
 * before, and must not be moved; `in` and `o` stay until ngram_beside_take has waited. */
void ngram_beside_begin(struct ngram_beside *b, const struct pretrain_inputs *in, int64_t n_samples,
                        const struct pretrain_options *o);

/* True once, when b->score is there; with `wait` it is waited for.  Safe on a zeroed struct. */
bool ngram_beside_take(struct ngram_beside *b, bool wait);

#endif
