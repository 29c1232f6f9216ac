#include "data/token_balance.h"

#include <stdlib.h>
#include <string.h>

struct status token_balance_create(struct token_balance **out, int64_t n_most, int64_t longest, int n_ranks)
{
    CHECK(n_most >= 1 && longest >= 1 && n_ranks >= 1 && n_most <= INT32_MAX, "%lld sequences on %d ranks",
          (long long)n_most, n_ranks);
    struct token_balance *b = calloc(1, sizeof *b);
    *out = b;
    if (b != NULL) {
        size_t n = (size_t)n_most;
        *b = (struct token_balance){.n_ranks = n_ranks,
                                    .n_most = n_most,
                                    .longest = longest,
                                    .lengths = calloc(n, sizeof *b->lengths),
                                    .dealt = calloc(n, sizeof *b->dealt),
                                    .by_length = calloc(n, sizeof *b->by_length),
                                    .rank_of = calloc(n, sizeof *b->rank_of),
                                    .starts = calloc((size_t)longest + 2, sizeof *b->starts),
                                    .tokens = calloc((size_t)n_ranks, sizeof *b->tokens),
                                    .count = calloc((size_t)n_ranks, sizeof *b->count)};
    }
    if (b == NULL || b->lengths == NULL || b->dealt == NULL || b->by_length == NULL || b->rank_of == NULL ||
        b->starts == NULL || b->tokens == NULL || b->count == NULL) {
        token_balance_destroy(b);
        *out = NULL;
        return status_error(STATUS_MEMORY, "out of memory for dealing out batches of %lld sequences",
                            (long long)n_most);
    }
    return status_ok();
}

void token_balance_destroy(struct token_balance *b)
{
    if (b == NULL) {
        return;
    }
    free(b->lengths);
    free(b->dealt);
    free(b->by_length);
    free(b->rank_of);
    free(b->starts);
    free(b->tokens);
    free(b->count);
    free(b);
}

/* by_length: the longest first, of equal ones the first first.  A counting sort. */
static void sort(struct token_balance *b, int64_t n)
{
    memset(b->starts, 0, (size_t)(b->longest + 2) * sizeof *b->starts);
    for (int64_t i = 0; i < n; i++) {
        CHECK(b->lengths[i] >= 0 && b->lengths[i] <= b->longest, "a sequence of %d tokens, of at most %lld",
              (int)b->lengths[i], (long long)b->longest);
        b->starts[b->longest - b->lengths[i] + 1]++;
    }
    for (int64_t k = 0; k <= b->longest; k++) {
        b->starts[k + 1] += b->starts[k];
    }
    for (int64_t i = 0; i < n; i++) {
        b->by_length[b->starts[b->longest - b->lengths[i]]++] = (int32_t)i;
    }
}

static int emptiest(const struct token_balance *b, int64_t room)
{
    int best = -1;
    for (int r = 0; r < b->n_ranks; r++) {
        if (b->count[r] < room && (best < 0 || b->tokens[r] < b->tokens[best])) {
            best = r;
        }
    }
    return best;
}

static int64_t fullest(const int64_t *tokens, int n_ranks)
{
    int64_t most = 0;
    for (int r = 0; r < n_ranks; r++) {
        most = tokens[r] > most ? tokens[r] : most;
    }
    return most;
}

/* Counts the tokens of the ranks if each had its consecutive part of the batch. */
static void count_in_order(struct token_balance *b, int64_t n)
{
    int64_t room = n / b->n_ranks;
    memset(b->tokens, 0, (size_t)b->n_ranks * sizeof *b->tokens);
    for (int64_t i = 0; i < n; i++) {
        b->tokens[i / room] += b->lengths[i];
        b->mean += (double)b->lengths[i] / b->n_ranks;
    }
    b->fullest_in_order += (double)fullest(b->tokens, b->n_ranks);
    b->n_batches++;
}

void token_balance_deal(struct token_balance *b, int64_t n)
{
    CHECK(n >= 1 && n <= b->n_most && n % b->n_ranks == 0, "%lld sequences on %d ranks", (long long)n,
          b->n_ranks);
    int64_t room = n / b->n_ranks;
    count_in_order(b, n);
    sort(b, n);
    memset(b->tokens, 0, (size_t)b->n_ranks * sizeof *b->tokens);
    memset(b->count, 0, (size_t)b->n_ranks * sizeof *b->count);
    for (int64_t k = 0; k < n; k++) {
        int32_t i = b->by_length[k];
        int r = emptiest(b, room);
        b->rank_of[i] = r;
        b->tokens[r] += b->lengths[i];
        b->count[r]++;
    }
    b->fullest += (double)fullest(b->tokens, b->n_ranks);
    memset(b->count, 0, (size_t)b->n_ranks * sizeof *b->count);
    for (int64_t i = 0; i < n; i++) {
        int32_t r = b->rank_of[i];
        b->dealt[r * room + b->count[r]++] = (int32_t)i;
    }
}
