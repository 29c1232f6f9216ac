/* The unigram baseline of held-out batches: the loss and the hits of a model that knows only how often each
 * word occurs, by hand. */
#include "train/evaluate.h"
#include "train/trainer_result.h"

#include "test.h"

#include <math.h>

enum { WORDS, CLASSES, VOCABULARY = 4 };

/* Words to predict are the second field, of tokens or of rows that are picked for a label. */
static struct batch_layout layout = {
    2,
    {{"types", BATCH_OF_TOKENS, 1, DTYPE_I32, false, 0}, {"words", BATCH_OF_LABELS, 1, DTYPE_I32, true, -1}}};

static int64_t heldout_batches(const void *self, int64_t n)
{
    (void)self;
    return n;
}

/* Batch 0 has the labels 2 2 0, batch 1 has 3, rounded up with none. */
static struct status heldout(const void *self, int64_t n, int64_t index, struct batch *out)
{
    static const int32_t labels[2][3] = {{2, 2, 0}, {3, -1, -1}};
    (void)self, (void)n;
    out->n_tokens = out->n_labels = 16;
    out->n_real_labels = out->n_real_tokens = index == 0 ? 3 : 1;
    out->n_sequences = 1;
    for (int i = 0; i < 16; i++) {
        out->fields[CLASSES][i] = i < 3 ? labels[index][i] : -1;
        out->fields[WORDS][i] = 1;
    }
    return status_ok();
}

static double n_of_word_0; /* in the training data */

static struct status count_words(const void *self, double *counts, int64_t vocab_size)
{
    (void)self;
    EXPECT(vocab_size == VOCABULARY, "%lld words", (long long)vocab_size);
    counts[0] += n_of_word_0;
    counts[2] += 5;
    return status_ok();
}

/* That of a text of which word 0 has so many words. */
static void expect_baseline(enum batch_rows rows, double n_of_0, double wanted, double accuracy)
{
    struct evaluation e;
    const struct batch_source source = {.self = &layout,
                                        .layout = &layout,
                                        .limits = {64, 4, 16, 64},
                                        .heldout_batches = heldout_batches,
                                        .heldout = heldout,
                                        .count_words = count_words};
    layout.fields[CLASSES].rows = rows;
    n_of_word_0 = n_of_0;
    EXPECT_OK(evaluation_init(&e, &source, 2, &source, CLASSES, VOCABULARY));
    EXPECT(fabs(e.unigram.loss - wanted) < 1e-12, "loss %.17g, not %.17g", e.unigram.loss, wanted);
    EXPECT(e.unigram.accuracy == accuracy, "accuracy %g", e.unigram.accuracy);
    evaluation_fini(&e);
}

/* "mlm_loss" is for programs, "mlm loss" for people. */
static void names_have_words(void)
{
    const struct trainer_sum sum = {.of = &(struct model_sum){.name = "mlm_loss_of_all"}};
    EXPECT(strcmp(trainer_sum_words(&sum).text, "mlm loss of all") == 0, "%s", trainer_sum_words(&sum).text);
}

int main(void)
{
    /* counts with one more of each word: 2 1 6 1 of 10, and 10 1 6 1 of 18 */
    double wanted = -(2 * log(0.6) + log(0.2) + log(0.1)) / 4;
    expect_baseline(BATCH_OF_LABELS, 1, wanted, 0.5);
    expect_baseline(BATCH_OF_TOKENS, 1, wanted, 0.5);
    expect_baseline(BATCH_OF_LABELS, 9, -(2 * log(6 / 18.0) + log(10 / 18.0) + log(1 / 18.0)) / 4, 0.25);
    names_have_words();
    return 0;
}
