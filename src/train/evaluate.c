#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>

static struct status measure_unigram(struct unigram *u, const struct batch_step *batches, int labels,
                                     const struct batch_source *train, int64_t vocab_size)
{
    double *counts = malloc((size_t)vocab_size * sizeof *counts);
    FAIL_IF(counts == NULL, STATUS_MEMORY, "out of memory for the counts of %lld words",
            (long long)vocab_size);
    for (int64_t i = 0; i < vocab_size; i++) {
        counts[i] = 1; /* so that no held-out word has probability zero (Laplace) */
    }
    struct status s = train->count_words(train->self, counts, vocab_size);
    double total = 0, loss = 0, hits = 0;
    int32_t most_frequent = 0;
    for (int64_t i = 0; i < vocab_size && !failed(s); i++) {
        total += counts[i];
        most_frequent = counts[i] > counts[most_frequent] ? (int32_t)i : most_frequent;
    }
    for (int64_t b = 0; b < batches->n_micro && !failed(s); b++) {
        const struct batch *batch = &batches->micro[b];
        for (int64_t m = 0; m < batch_real_rows(batch, batch->layout->fields[labels].rows); m++) {
            int32_t label = batch->fields[labels][m];
            loss -= label < 0 ? 0 : log(counts[label] / total);
            hits += label == most_frequent;
        }
    }
    free(counts);
    double n = batches->n_labels[labels] > 0 ? (double)batches->n_labels[labels] : 1;
    *u = (struct unigram){.loss = loss / n, .accuracy = hits / n};
    return s;
}

struct status evaluation_init(struct evaluation *e, const struct batch_source *heldout, int64_t n_samples,
                              const struct batch_source *train, int labels, int64_t vocab_size)
{
    *e = (struct evaluation){0};
    int64_t n_batches = heldout->heldout_batches(heldout->self, n_samples);
    TRY(batch_step_init(&e->batches, n_batches, heldout->layout, heldout->limits));
    struct status s = status_ok();
    for (int64_t i = 0; i < n_batches && !failed(s); i++) {
        s = heldout->heldout(heldout->self, n_samples, i, &e->batches.micro[i]);
    }
    if (!failed(s)) {
        batch_step_count(&e->batches);
        s = measure_unigram(&e->unigram, &e->batches, labels, train, vocab_size);
    }
    if (failed(s)) {
        evaluation_fini(e);
    }
    return s;
}

void evaluation_fini(struct evaluation *e)
{
    batch_step_fini(&e->batches);
}
