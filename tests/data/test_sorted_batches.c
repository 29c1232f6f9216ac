/* Batches for prediction: every example once, longest first, within the limits, and as full as they can
 * be. */
#include "test.h"

#include "data/sorted_batches.h"

#include <stdlib.h>

enum { MOST = 300 };

static int64_t lengths[MOST];

static int64_t length_of(const void *self, int64_t i)
{
    (void)self;
    return lengths[i];
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    (void)self;
    int32_t *ids = text_batch_add(out, lengths[i], lengths[i], -1, key);
    for (int64_t k = 0; k < lengths[i]; k++) {
        ids[k] = (int32_t)i;
    }
}

/* Counts the examples in a batch and checks where they lie. */
static void check_batch(const struct batch *b, const int64_t *examples, int seen[MOST], int64_t *longest)
{
    EXPECT(b->n_real_tokens <= b->limits.n_tokens && b->n_sequences < b->limits.n_sequences, "the limits");
    for (int64_t s = 0; s < b->n_sequences; s++) {
        int64_t first = b->cu_seqlens[s], n = b->cu_seqlens[s + 1] - first;
        EXPECT(n == lengths[examples[s]] && b->ids[first] == examples[s], "sequence %lld", (long long)s);
        EXPECT(n <= *longest, "a batch of shorter ones comes first");
        *longest = n;
        seen[examples[s]]++;
    }
}

/* Room for n texts of `longest` tokens, or for more that are shorter. */
static struct batch_limits shared_limits(int64_t n, int64_t longest)
{
    struct batch_limits limits = text_batch_limits(n, longest, 0);
    limits.n_sequences = limits.n_tokens / 2 + 1;
    return limits;
}

/* The number of batches. */
static int64_t check(int64_t n, struct batch_limits limits)
{
    struct example_source source = {.name = "texts", .n = n, .length = length_of, .add = add};
    struct sorted_batches batches;
    struct batch batch;
    int seen[MOST] = {0};
    int64_t longest = INT64_MAX;
    EXPECT_OK(sorted_batches_init(&batches, &source, limits, 0));
    EXPECT_OK(text_batch_init(&batch, limits));
    for (int64_t i = 0; i < batches.n; i++) {
        const int64_t *examples = sorted_batches_fill(&batches, i, &batch);
        check_batch(&batch, examples, seen, &longest);
    }
    for (int64_t i = 0; i < n; i++) {
        EXPECT(seen[i] == 1, "example %lld is seen %d times", (long long)i, seen[i]);
    }
    int64_t n_batches = batches.n;
    batch_fini(&batch);
    sorted_batches_fini(&batches);
    return n_batches;
}

int main(void)
{
    for (int i = 0; i < MOST; i++) {
        lengths[i] = 8;
    }
    EXPECT(check(256, shared_limits(4, 512)) == 1, "short examples run at once");
    lengths[17] = 512;
    EXPECT(check(256, shared_limits(4, 512)) == 2, "a long one takes no more than its own room");
    EXPECT(check(256, text_batch_limits(4, 512, 0)) == 64, "unless a batch may have 4 examples only");
    EXPECT(check(1, shared_limits(1, 512)) == 1, "one");
    EXPECT(check(0, shared_limits(1, 512)) == 0, "none");
    for (int i = 0; i < MOST; i++) {
        lengths[i] = 2 + i * 7919 % 127;
    }
    int64_t n = check(MOST, shared_limits(1, 128));
    EXPECT(n >= 150 && n <= 200, "lengths of all kinds make %lld batches of 128 tokens", (long long)n);
    return 0;
}
