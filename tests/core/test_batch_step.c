/* A step's counts are the sums over its micro-batches, padding apart, and its parts keep their numbers. */
#include "core/batch.h"
#include "test.h"

enum { LABELS, N_MICRO = 4 };

static const struct batch_layout layout = {1, {{"labels", BATCH_OF_TOKENS, 1, DTYPE_I32, true, -1}}};
static const struct batch_limits limits = {
    .n_tokens = 256, .n_sequences = 8, .n_labels = 16, .max_seqlen = 64};

/* Micro-batch k: k + 1 sequences of 5 tokens, of which the first has a label. */
static void fill(struct batch *b, int64_t k)
{
    batch_clear(b);
    for (int64_t i = 0; i <= k; i++) {
        int64_t row = batch_add(b, 5, (int32_t)i);
        for (int64_t t = 0; t < 5; t++) {
            b->ids[row + t] = 7;
            b->fields[LABELS][row + t] = t == 0 ? 3 : -1;
        }
    }
    batch_finish(b, 0);
}

static void counts_are_sums(void)
{
    struct batch_step step;
    EXPECT_OK(batch_step_init(&step, N_MICRO, &layout, limits));
    for (int64_t k = 0; k < N_MICRO; k++) {
        fill(&step.micro[k], k);
    }
    for (int again = 0; again < 2; again++) { /* a second count begins anew */
        batch_step_count(&step);
        EXPECT(step.n_sequences == 10 && step.n_tokens == 50 && step.n_labels[LABELS] == 10,
               "%lld sequences, %lld tokens, %lld labels", (long long)step.n_sequences,
               (long long)step.n_tokens, (long long)step.n_labels[LABELS]);
    }
    struct batch_step part = batch_step_part(&step, 1, 2);
    EXPECT(part.n_micro == 2 && part.micro == step.micro + 2 && batch_step_number(&part, 1) == 3,
           "%lld micro-batches from %lld on", (long long)part.n_micro,
           (long long)batch_step_number(&part, 0));
    batch_step_fini(&step);
}

static void expect_numbers(int part, bool in_turn, int64_t first, int64_t second)
{
    struct batch_step step;
    EXPECT_OK(batch_step_init_part(&step, N_MICRO, part, 2, in_turn, &layout, limits));
    EXPECT(step.n_micro == 2 && step.n_all_micro == N_MICRO, "%lld of %lld", (long long)step.n_micro,
           (long long)step.n_all_micro);
    EXPECT(batch_step_number(&step, 0) == first && batch_step_number(&step, 1) == second, "%lld and %lld",
           (long long)batch_step_number(&step, 0), (long long)batch_step_number(&step, 1));
    batch_step_fini(&step);
}

int main(void)
{
    counts_are_sums();
    expect_numbers(0, false, 0, 1);
    expect_numbers(1, false, 2, 3);
    expect_numbers(0, true, 0, 2);
    expect_numbers(1, true, 1, 3);
    return 0;
}
