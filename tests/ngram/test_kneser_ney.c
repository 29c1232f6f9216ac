/* Counts of n-grams and the probabilities of Kneser-Ney: those of the formulas, evaluated slowly from the
 * text; after any context they sum to 1; texts that are too small, and ids that are none. */
#include "test.h"

#include "core/rng.h"
#include "ngram/kneser_ney.h"

#include <math.h>
#include <string.h>

enum { N = 400, WORDS = 7, UNSEEN = 1 };

static int32_t text[N];

/* A text of documents in which what follows depends on what was before; the last token never occurs. */
static void make_text(void)
{
    for (int i = 0; i < N; i++) {
        uint32_t draw = rng_philox(3, (uint32_t)i, 0, 0, 0).word[0];
        int32_t before = i > 0 && text[i - 1] >= 0 ? text[i - 1] : 0;
        text[i] = draw % 3 > 0 ? (before * 2 + 1) % (WORDS - UNSEEN) : (int32_t)(draw / 3 % (WORDS - UNSEEN));
        if (i == 0 || draw % 29 == 0) {
            text[i] = NGRAM_BEGIN;
        }
    }
}

/* ---- the definition ---- */

static bool occurs(int at, const int32_t *gram, int m)
{
    for (int k = 0; k < m; k++) {
        if (at < 0 || at + k >= N || text[at + k] != gram[k] || (k > 0 && text[at + k] == NGRAM_BEGIN)) {
            return false;
        }
    }
    return true;
}

/* How often an m-gram occurs, or after how many different tokens. */
static int count_of(const int32_t *gram, int m, int order)
{
    bool seen[WORDS + 1] = {false};
    int times = 0, after = 0;
    for (int at = 0; at < N; at++) {
        if (!occurs(at, gram, m)) {
            continue;
        }
        times++;
        if (at > 0 && gram[0] != NGRAM_BEGIN && !seen[text[at - 1] + 1]) {
            seen[text[at - 1] + 1] = true;
            after++;
        }
    }
    bool alone = m == 1 && gram[0] == NGRAM_BEGIN;
    return alone ? 0 : m == order || gram[0] == NGRAM_BEGIN ? times : after;
}

static void slow_discounts(double d[4], int m, int order)
{
    double n[5] = {0};
    for (int at = 0; at + m <= N; at++) {
        bool is_first = occurs(at, text + at, m);
        for (int before = 0; before < at && is_first; before++) {
            is_first = !occurs(before, text + at, m);
        }
        int count = is_first ? count_of(text + at, m, order) : 0;
        n[count <= 4 ? count : 0]++;
    }
    double y = n[1] / (n[1] + 2 * n[2]);
    double found[4] = {0, 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]};
    bool known = n[1] > 0 && n[2] > 0 && n[3] > 0 && n[4] > 0 && found[2] > 0 && found[3] > 0;
    memcpy(d, known ? found : (double[]){0, 0.5, 1, 1.5}, 4 * sizeof *d);
}

static double discounts[NGRAM_MOST_ORDER + 1][4];

/* gram[0..m): a context of m - 1 tokens and a token. */
static double slow_p(int32_t *gram, int m, int order)
{
    if (m == 0) {
        return 1.0 / WORDS;
    }
    int32_t token = gram[m - 1];
    double all = 0, rest = 0, own = 0;
    for (int32_t w = 0; w < WORDS; w++) {
        gram[m - 1] = w;
        int a = count_of(gram, m, order);
        double cut = discounts[m][a < 3 ? a : 3];
        all += a;
        rest += cut;
        own += w == token ? a - cut : 0;
    }
    gram[m - 1] = token;
    double shorter = slow_p(gram + 1, m - 1, order);
    return all == 0 ? shorter : own / all + rest / all * shorter;
}

static void draw_context(int32_t *context, int n, uint32_t number)
{
    int at = (int)(rng_philox(5, number, 0, 0, 0).word[0] % (uint32_t)(N - n));
    memcpy(context, text + at, (size_t)n * sizeof *context);
    if (number % 3 == 0) { /* one that the text need not have */
        context[number % (uint32_t)n] = (int32_t)(number % WORDS);
    }
}

static void check_order(int order)
{
    struct kneser_ney k;
    EXPECT_OK(kneser_ney_init(&k, text, N, order, WORDS));
    for (int m = 1; m <= order; m++) {
        slow_discounts(discounts[m], m, order);
        for (int i = 1; i < 4; i++) {
            EXPECT(fabs(discounts[m][i] - k.levels[m].discounts[i]) < 1e-12,
                   "order %d, level %d: D_%d is %g, not %g", order, m, i, k.levels[m].discounts[i],
                   discounts[m][i]);
        }
    }
    for (uint32_t number = 0; number < 60; number++) {
        int32_t gram[NGRAM_MOST_ORDER + 1];
        double sum = 0;
        int n = order - 1;
        draw_context(gram, n + 1, number);
        for (int i = 1; i < n; i++) { /* the definition knows no context across documents */
            gram[i] = gram[i] == NGRAM_BEGIN ? 0 : gram[i];
        }
        for (int32_t w = 0; w < WORDS; w++) {
            double p = kneser_ney_p(&k, gram, n, w);
            gram[n] = w;
            double wanted = slow_p(gram, n + 1, order);
            EXPECT(fabs(p - wanted) < 1e-6, "order %d, context %u, token %d: %.8f, not %.8f", order, number,
                   w, p, wanted);
            EXPECT(p > 0, "token %d cannot be", w);
            sum += p;
        }
        EXPECT(fabs(sum - 1) < 1e-6, "order %d, context %u: probabilities sum to %.8f", order, number, sum);
    }
    EXPECT(kneser_ney_bytes(&k) <= kneser_ney_most_bytes(N, order), "%zu bytes are more than were stated",
           kneser_ney_bytes(&k));
    kneser_ney_fini(&k);
}

static void longer_contexts_count_by_their_end(void)
{
    struct kneser_ney k;
    const int32_t context[] = {1, 2, 3, 4, 5, 1, 2, 3};
    EXPECT_OK(kneser_ney_init(&k, text, N, 3, WORDS));
    EXPECT(kneser_ney_p(&k, context, 8, 2) == kneser_ney_p(&k, context + 6, 2, 2),
           "a token out of reach counts");
    kneser_ney_fini(&k);
}

static void small_texts(void)
{
    struct kneser_ney k;
    const int32_t one[] = {NGRAM_BEGIN, 2}, none[] = {NGRAM_BEGIN, NGRAM_BEGIN},
                  large[] = {NGRAM_BEGIN, WORDS}, negative[] = {0, -2};
    EXPECT_OK(kneser_ney_init(&k, one, 2, 6, WORDS));
    double sum = 0;
    for (int32_t w = 0; w < WORDS; w++) {
        sum += kneser_ney_p(&k, one, 1, w);
    }
    EXPECT(fabs(sum - 1) < 1e-6 && k.levels[1].assumed, "one token: %g", sum);
    EXPECT(kneser_ney_p(&k, one, 1, 2) > kneser_ney_p(&k, one, 1, 1),
           "what occurred is as probable as what did not");
    kneser_ney_fini(&k);
    EXPECT_ERROR(kneser_ney_init(&k, none, 2, 2, WORDS), STATUS_DATA, "there is no token to count");
    kneser_ney_fini(&k);
    EXPECT_ERROR(kneser_ney_init(&k, large, 2, 2, WORDS), STATUS_DATA,
                 "token 1 is 7, but the vocabulary has 7 pieces");
    kneser_ney_fini(&k);
    EXPECT_ERROR(kneser_ney_init(&k, negative, 2, 2, WORDS), STATUS_DATA, "token 1 is -2");
    kneser_ney_fini(&k);
}

int main(void)
{
    make_text();
    for (int order = 1; order <= NGRAM_MOST_ORDER; order++) {
        check_order(order);
    }
    longer_contexts_count_by_their_end();
    small_texts();
    return 0;
}
