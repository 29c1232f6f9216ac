#include "task/ngram_beside.h"

#include "core/log.h"
#include "core/signals.h"

static void *count(void *argument)
{
    struct ngram_beside *b = argument;
    b->status = b->options->kind->count_ngrams(&b->score, b->in, b->n_samples, b->options);
    atomic_store(&b->done, true);
    return NULL;
}

void ngram_beside_begin(struct ngram_beside *b, const struct pretrain_inputs *in, int64_t n_samples,
                        const struct pretrain_options *o)
{
    sigset_t before;
    if (o->kind->count_ngrams == NULL) {
        return;
    }
    b->in = in;
    b->options = o;
    b->n_samples = n_samples;
    signals_block(&before);
    b->running = pthread_create(&b->thread, NULL, count, b) == 0;
    signals_restore(&before);
    if (!b->running) {
        log_warning("no counts of n-grams: a thread for them cannot be started");
    }
}

bool ngram_beside_take(struct ngram_beside *b, bool wait)
{
    if (!b->running || (!wait && !atomic_load(&b->done))) {
        return false;
    }
    pthread_join(b->thread, NULL);
    b->running = false;
    if (failed(b->status)) {
        log_warning("no counts of n-grams: %s", b->status.message);
        b->score.n_samples = 0;
    }
    return b->score.n_samples > 0;
}
