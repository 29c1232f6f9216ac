/* Tests of data/store_overlap: the share of held-out places is that of a comparison of all, and 0 where
 * nothing is alike or one is too short. */
#include "test.h"

#include "data/store_check.h"

#include <string.h>

static struct indexed store_of(const uint16_t *ids, int64_t n)
{
    return (struct indexed){.bin = {.data = (const unsigned char *)ids, .n = (size_t)n * sizeof *ids},
                            .n_tokens = n,
                            .token_bytes = 2};
}

static double share_of(const uint16_t *heldout, int64_t n_heldout, const uint16_t *train, int64_t n_train)
{
    struct indexed h = store_of(heldout, n_heldout), t = store_of(train, n_train);
    double share = -1;
    EXPECT_OK(store_overlap(&share, &h, &t));
    return share;
}

static double by_definition(const uint16_t *heldout, int64_t n_heldout, const uint16_t *train,
                            int64_t n_train)
{
    enum { W = STORE_OVERLAP_TOKENS };
    int64_t n_found = 0;
    for (int64_t i = 0; i + W <= n_heldout; i++) {
        bool found = false;
        for (int64_t j = 0; j + W <= n_train && !found; j++) {
            found = memcmp(heldout + i, train + j, W * sizeof *train) == 0;
        }
        n_found += found;
    }
    return (double)n_found / (double)(n_heldout - W + 1);
}

/* Tokens from so few words that short stretches are alike everywhere; longer than what is read at once. */
static void make(uint16_t *ids, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        ids[i] = (uint16_t)(seed >> 62);
    }
}

int main(void)
{
    enum { N_TRAIN = 20000, N_HELDOUT = 9000 };
    static uint16_t train[N_TRAIN], heldout[N_HELDOUT];
    make(train, N_TRAIN, 1);
    make(heldout, N_HELDOUT, 2);
    EXPECT(share_of(heldout, N_HELDOUT, train, N_TRAIN) == 0, "texts that differ");
    memcpy(heldout + 4000, train + 4090, 1000 * sizeof *train); /* over the ends of what is read at once */
    memcpy(heldout, train + N_TRAIN - 100, 100 * sizeof *train);
    memcpy(heldout + 8000, train + 4090, 1000 * sizeof *train); /* the same again */
    double got = share_of(heldout, N_HELDOUT, train, N_TRAIN),
           wanted = by_definition(heldout, N_HELDOUT, train, N_TRAIN);
    EXPECT(got == wanted && wanted > 0.2, "%.6f, not %.6f", got, wanted);
    EXPECT(share_of(train, N_TRAIN, train, N_TRAIN) == 1, "the same text");
    EXPECT(share_of(heldout, STORE_OVERLAP_TOKENS - 1, train, N_TRAIN) == 0, "a short text");
    return 0;
}
