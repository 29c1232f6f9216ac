/* data/token_balance: ranks have nearly equal tokens and equal counts, each sequence once, by lengths alone;
 * and the batches that bert_loader makes with it: the same sequences with the same masks and dropout, whoever
 * has them. */
#include "data/token_balance.h"
#include "fixture_loader.h"

#include <stdlib.h>

enum { N = 96, LONGEST = 128 };

static int64_t tokens_of(const struct token_balance *b, int rank, int64_t n)
{
    int64_t sum = 0, each = n / b->n_ranks;
    for (int64_t i = rank * each; i < (rank + 1) * each; i++) {
        sum += b->lengths[b->dealt[i]];
        EXPECT(i == rank * each || b->dealt[i] > b->dealt[i - 1], "rank %d: another order", rank);
    }
    return sum;
}

static void each_is_dealt_once(const struct token_balance *b, int64_t n)
{
    int seen[N] = {0};
    for (int64_t i = 0; i < n; i++) {
        seen[b->dealt[i]]++;
    }
    for (int64_t i = 0; i < n; i++) {
        EXPECT(seen[i] == 1, "sequence %lld is dealt %d times", (long long)i, seen[i]);
    }
}

/* Lengths as of BERT's data: most as long as can be, and some of any length. */
static void mixed(int32_t *lengths, int64_t n, uint64_t seed)
{
    struct rng_stream r = rng_stream(seed);
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = rng_below(&r, 2) == 0 ? LONGEST : 5 + (int32_t)rng_below(&r, LONGEST - 4);
    }
}

static void ranks_have_equal_tokens(void)
{
    for (int n_ranks = 2; n_ranks <= 8; n_ranks *= 2) {
        struct token_balance *b;
        EXPECT_OK(token_balance_create(&b, N, LONGEST, n_ranks));
        for (uint64_t seed = 1; seed <= 20; seed++) {
            int64_t least = INT64_MAX, most = 0;
            mixed(b->lengths, N, seed);
            token_balance_deal(b, N);
            each_is_dealt_once(b, N);
            for (int rank = 0; rank < n_ranks; rank++) {
                int64_t n = tokens_of(b, rank, N);
                least = n < least ? n : least;
                most = n > most ? n : most;
            }
            EXPECT(most - least <= LONGEST / 4, "%d ranks: from %lld to %lld tokens", n_ranks,
                   (long long)least, (long long)most);
        }
        EXPECT(b->n_batches == 20 && b->fullest / b->mean < 1.01 && b->fullest_in_order / b->mean > 1.03,
               "%d ranks: %g, without %g", n_ranks, b->fullest / b->mean, b->fullest_in_order / b->mean);
        token_balance_destroy(b);
    }
}

static void equal_lengths_stay_in_turn(void)
{
    struct token_balance *b;
    EXPECT_OK(token_balance_create(&b, 8, 10, 2));
    for (int i = 0; i < 8; i++) {
        b->lengths[i] = 10;
    }
    token_balance_deal(b, 8);
    for (int i = 0; i < 8; i++) {
        EXPECT(b->dealt[i] == (i < 4 ? 2 * i : 2 * (i - 4) + 1), "place %d has %d", i, b->dealt[i]);
    }
    EXPECT_NEAR(b->fullest, b->fullest_in_order, 0);
    b->lengths[0] = 1; /* a shorter batch in the same memory, whose shortest goes last */
    token_balance_deal(b, 4);
    EXPECT(b->dealt[0] == 1 && b->dealt[1] == 3 && b->dealt[2] == 0 && b->dealt[3] == 2,
           "%d and %d, %d and %d", b->dealt[0], b->dealt[1], b->dealt[2], b->dealt[3]);
    token_balance_destroy(b);
}

/* ---- of the loader ---- */

enum { VOCAB = 60000, BATCH = 32, MICRO = 8, GROUPS = 2 };

static struct bert_loader_config config_of(const struct indexed *store)
{
    struct bert_loader_config c = fixture_loader(store, VOCAB);
    c.seed = 42;
    c.batch.max_seq_length = 48;
    c.max_predictions_per_seq = 7;
    c.short_seq_prob = 0.5;
    c.batch.train_batch_size = BATCH;
    c.batch.gradient_accumulation_steps = MICRO;
    return c;
}

/* The sums of what each place of the global batch has, by the key of its dropout. */
static void add_places(const struct batch_step *step, uint64_t sums[BATCH], int seen[BATCH])
{
    for (int64_t m = 0; m < step->n_micro; m++) {
        const struct batch *b = &step->micro[m];
        for (int64_t k = 0; k < b->n_sequences; k++) {
            int32_t key = b->row_keys[2 * (int64_t)b->cu_seqlens[k]];
            seen[key]++;
            for (int64_t i = b->cu_seqlens[k]; i < b->cu_seqlens[k + 1]; i++) {
                sums[key] = sums[key] * 31 + (uint64_t)b->ids[i];
            }
        }
    }
}

/* All parts of a step, each from a loader of its own, as ranks have. */
static void fill_parts(const struct bert_loader_config *c, bool in_turn, int64_t step, uint64_t sums[BATCH],
                       int seen[BATCH], int64_t tokens[GROUPS], int64_t filled[GROUPS])
{
    for (int rank = 0; rank < GROUPS; rank++) {
        struct bert_loader l;
        struct batch_step part;
        EXPECT_OK(bert_loader_open(&l, *c));
        struct batch_source source = bert_loader_source(&l);
        EXPECT_OK(
            batch_step_init_part(&part, source.n_micro, rank, GROUPS, in_turn, source.layout, source.limits));
        EXPECT_OK(bert_loader_step(&l, step, &part));
        add_places(&part, sums, seen);
        tokens[rank] = part.n_tokens;
        filled[rank] = batch_step_n_filled(&part);
        batch_step_fini(&part);
        bert_loader_close(&l);
    }
}

static void batches_have_the_same_sequences(const struct indexed *store, bool in_turn)
{
    struct bert_loader_config plain = config_of(store), balanced = config_of(store);
    balanced.n_groups = GROUPS;
    balanced.balance_tokens = true;
    int64_t in_order = 0, dealt = 0;
    for (int64_t step = 1; step <= 10; step++) {
        uint64_t wanted[BATCH] = {0}, got[BATCH] = {0};
        int seen[BATCH] = {0}, seen_too[BATCH] = {0};
        int64_t tokens[GROUPS], tokens_too[GROUPS], filled[GROUPS];
        fill_parts(&plain, false, step, wanted, seen, tokens, filled);
        fill_parts(&balanced, in_turn, step, got, seen_too, tokens_too, filled);
        EXPECT(memcmp(wanted, got, sizeof got) == 0, "step %lld has other sequences", (long long)step);
        for (int i = 0; i < BATCH; i++) {
            EXPECT(seen[i] == 1 && seen_too[i] == 1, "place %d is there %d times", i, seen_too[i]);
        }
        EXPECT(filled[0] == MICRO / GROUPS && filled[1] == MICRO / GROUPS, "micro-batches");
        EXPECT(llabs(tokens_too[0] - tokens_too[1]) <= 12, "step %lld: %lld and %lld tokens", (long long)step,
               (long long)tokens_too[0], (long long)tokens_too[1]);
        in_order += llabs(tokens[0] - tokens[1]);
        dealt += llabs(tokens_too[0] - tokens_too[1]);
    }
    EXPECT(8 * dealt < in_order, "%lld tokens too many, %lld without", (long long)dealt, (long long)in_order);
}

int main(void)
{
    struct indexed store;
    ranks_have_equal_tokens();
    equal_lengths_stay_in_turn();
    fixture_store(&store, "train", 300, 20, 16, VOCAB);
    for (int in_turn = 0; in_turn < 2; in_turn++) { /* or consecutive micro-batches of a rank */
        batches_have_the_same_sequences(&store, in_turn);
    }
    indexed_close(&store);
    fixture_remove();
    return 0;
}
