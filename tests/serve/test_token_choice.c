/* The choice of a token is what a sort of all logits gives, for any vocabulary and options; and the cuts of a
 * distribution are what they say. */
#include "core/rng.h"
#include "serve/token_choice.h"
#include "test.h"

#include <string.h>

/* ---- the sort ---- */

static int compare(const void *a, const void *b)
{
    const struct token_candidate *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit) - (x->logit > y->logit)
                                : (x->id > y->id) - (x->id < y->id);
}

/* All candidates, sorted; the caller frees them. */
static struct token_candidate *sorted(const float *logits, int64_t n)
{
    struct token_candidate *c = malloc((size_t)n * sizeof *c);
    EXPECT(c != NULL, "no memory");
    for (int32_t i = 0; i < n; i++) {
        c[i] = (struct token_candidate){logits[i], 0, i};
    }
    qsort(c, (size_t)n, sizeof *c, compare);
    return c;
}

static int64_t cut_improbable(const struct token_candidate *c, int64_t n, double min_p)
{
    while (n > 1 && (double)c[n - 1].weight < min_p) {
        n--;
    }
    return n;
}

/* The number of candidates, sorted, that top_k, top_p and min_p leave. */
static int64_t cut(struct token_candidate *c, int64_t n, const struct token_choice_options *o)
{
    double all = 0, sum = 0;
    int64_t n_left = o->top_k > 0 && o->top_k < n ? o->top_k : n;
    for (int64_t i = 0; i < n_left; i++) {
        c[i].weight = (float)exp(((double)c[i].logit - (double)c[0].logit) / o->temperature);
        all += (double)c[i].weight;
    }
    for (int64_t i = 0; i < n_left; i++) {
        sum += (double)c[i].weight;
        if (sum >= o->top_p * all) {
            return cut_improbable(c, i + 1, o->min_p);
        }
    }
    return cut_improbable(c, n_left, o->min_p);
}

static int32_t choose_by_sorting(const float *logits, int64_t n, const struct token_choice_options *o,
                                 double random)
{
    struct token_candidate *c = sorted(logits, n);
    int64_t n_left = cut(c, n, o), chosen = 0;
    double all = 0, sum = 0;
    for (int64_t i = 0; i < n_left; i++) {
        all += (double)c[i].weight;
    }
    while (chosen < n_left - 1 && (sum += (double)c[chosen].weight) <= random * all) {
        chosen++;
    }
    int32_t id = c[chosen].id;
    free(c);
    return id;
}

/* Logits in steps, so that many are equal. */
static void fill(float *logits, int64_t n, double width, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) {
        logits[i] = (float)(round(rng_normal(key, (uint64_t)i) * width * 16) / 16);
    }
}

/* Random numbers of a choice, the first and the last of [0, 1) among them. */
static double random_at(uint64_t i)
{
    return i % 7 == 5 ? 0 : i % 7 == 6 ? 1 - 0x1p-53 : rng_uniform_at(7, i);
}

static void check_vocabulary(int64_t n, double width)
{
    static const int64_t ks[] = {0, 1, 2, 51, 1000};
    static const double ps[] = {1, 0.95, 0.5, 0.01, 0}, min_ps[] = {0, 0.02, 0.3, 1};
    float *logits = malloc((size_t)n * sizeof *logits);
    struct token_choice c;
    EXPECT_OK(token_choice_init(&c, n));
    EXPECT(logits != NULL, "no memory");
    for (uint64_t i = 0; i < 200; i++) {
        struct token_choice_options o = {.temperature = i % 3 == 0 ? 0.7 : 1.5,
                                         .top_k = ks[i % 5],
                                         .top_p = ps[i / 5 % 5],
                                         .repetition_penalty = 1,
                                         .min_p = min_ps[i / 25 % 4]};
        double random = random_at(i);
        fill(logits, n, width, i);
        int32_t wanted = choose_by_sorting(logits, n, &o, random);
        int32_t id = token_choose(&c, logits, (struct token_past){0}, &o, random);
        EXPECT(id == wanted, "of %lld, k %lld, p %g: %d, and by sorting %d", (long long)n, (long long)o.top_k,
               o.top_p, id, wanted);
    }
    token_choice_fini(&c);
    free(logits);
}

/* The k candidates that top_k leaves, in any order, are the first k of a sort. */
static void check_largest(int64_t n, int64_t k, uint64_t key)
{
    enum { MOST = 128 };
    float logits[MOST];
    struct token_choice c;
    fill(logits, n, 1, key);
    struct token_candidate *wanted = sorted(logits, n);
    EXPECT_OK(token_choice_init(&c, n));
    token_choose(
        &c, logits, (struct token_past){0},
        &(struct token_choice_options){.temperature = 1, .top_k = k, .top_p = 1, .repetition_penalty = 1}, 0);
    qsort(c.candidates, (size_t)k, sizeof *c.candidates, compare);
    for (int64_t i = 0; i < k; i++) {
        EXPECT(c.candidates[i].id == wanted[i].id, "the %lld largest of %lld: %d in place %lld, not %d",
               (long long)k, (long long)n, c.candidates[i].id, (long long)i, wanted[i].id);
    }
    token_choice_fini(&c);
    free(wanted);
}

static void test_largest(void)
{
    for (int64_t k = 1; k <= 40; k++) {
        for (uint64_t key = 0; key < 10; key++) {
            check_largest(k + 1 + (int64_t)key * 9 % 80, k, key);
        }
    }
}

/* Of tokens that are equally probable each has its part of [0, 1), without the part's end. */
static void test_parts(int64_t n)
{
    float logits[64] = {0};
    struct token_choice c;
    const struct token_choice_options o = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    EXPECT_OK(token_choice_init(&c, n));
    for (int64_t i = 0; i < n; i++) {
        double begin = (double)i / (double)n, last = (double)(i + 1) / (double)n - 0x1p-53;
        int32_t a = token_choose(&c, logits, (struct token_past){0}, &o, begin),
                b = token_choose(&c, logits, (struct token_past){0}, &o, last);
        EXPECT(a == i && b == i, "of %lld: %d and %d, not %lld", (long long)n, a, b, (long long)i);
    }
    token_choice_fini(&c);
}

/* ---- cuts ---- */

static void count_choices(int counts[5], const struct token_choice_options *o)
{
    enum { DRAWS = 4000 };
    struct token_choice c;
    EXPECT_OK(token_choice_init(&c, 5));
    memset(counts, 0, 5 * sizeof *counts);
    for (uint64_t i = 0; i < DRAWS; i++) {
        /* probabilities 0.4, 0.3, 0.2, 0.1, 0 */
        float logits[5] = {logf(0.2f), logf(0.4f), logf(0.1f), logf(0.3f), -INFINITY};
        counts[token_choose(&c, logits, (struct token_past){0}, o, rng_uniform_at(9, i))]++;
    }
    token_choice_fini(&c);
}

static void test_cuts(void)
{
    int n[5];
    count_choices(n, &(struct token_choice_options){.temperature = 1, .top_p = 1, .repetition_penalty = 1});
    EXPECT(abs(n[1] - 1600) < 120 && abs(n[3] - 1200) < 120 && abs(n[0] - 800) < 120 &&
               abs(n[2] - 400) < 120 && n[4] == 0,
           "drawn %d %d %d %d %d", n[0], n[1], n[2], n[3], n[4]);
    count_choices(
        n, &(struct token_choice_options){.temperature = 1, .top_k = 2, .top_p = 1, .repetition_penalty = 1});
    EXPECT(n[0] == 0 && n[2] == 0 && abs(n[1] - 2286) < 130, "top_k 2: %d of %d", n[1], n[3]);
    count_choices(n,
                  &(struct token_choice_options){.temperature = 1, .top_p = 0.65, .repetition_penalty = 1});
    EXPECT(n[0] == 0 && n[2] == 0 && n[3] > 0, "top_p 0.65 leaves two");
    count_choices(n,
                  &(struct token_choice_options){.temperature = 1, .top_p = 0.75, .repetition_penalty = 1});
    EXPECT(n[0] > 0 && n[2] == 0, "top_p 0.75 leaves three");
    count_choices(n,
                  &(struct token_choice_options){.temperature = 0.01, .top_p = 1, .repetition_penalty = 1});
    EXPECT(n[1] == 4000, "cold: %d", n[1]);
    count_choices(n, &(struct token_choice_options){.temperature = 0, .top_p = 1, .repetition_penalty = 1});
    EXPECT(n[1] == 4000, "greedy: %d", n[1]);
}

/* Chooses the largest of logits[0..3) and leaves them as it changed them. */
static int32_t choose_changed(float logits[3], struct token_past past, struct token_choice_options o)
{
    struct token_choice c;
    o.top_p = 1;
    EXPECT_OK(token_choice_init(&c, 3));
    int32_t id = token_choose(&c, logits, past, &o, 0);
    EXPECT(c.counts[0] == 0 && c.counts[1] == 0 && c.counts[2] == 0, "a choice counts in the next");
    token_choice_fini(&c);
    return id;
}

static void expect_logits(const float logits[3], float a, float b, float c)
{
    EXPECT(logits[0] == a && logits[1] == b && logits[2] == c, "%g %g %g, not %g %g %g", (double)logits[0],
           (double)logits[1], (double)logits[2], (double)a, (double)b, (double)c);
}

/* Once for each token, whatever its sign. */
static void test_repetition(void)
{
    static const int32_t ids[] = {2, 1, 1};
    float logits[3] = {2, 3, -1};
    const struct token_past past = {ids, 2, 3};
    EXPECT(choose_changed(logits, past, (struct token_choice_options){.repetition_penalty = 2}) == 0,
           "a token that was there wins");
    expect_logits(logits, 2, 1.5f, -2);
}

/* What was read does not count; what was generated counts each time, and once. */
static void test_new_tokens(void)
{
    static const int32_t ids[] = {0, 1, 2, 2, 1, 2};
    float logits[3] = {1, 1, 1};
    const struct token_past past = {ids, 2, 6};
    struct token_choice_options o = {
        .repetition_penalty = 1, .presence_penalty = 0.25, .frequency_penalty = 0.5};
    choose_changed(logits, past, o);
    expect_logits(logits, 1, 0.25f, -0.75f);
    o.frequency_penalty = 0;
    choose_changed(logits, past, o);
    expect_logits(logits, 1, 0, -1);
}

/* Biases go before penalties; of ids that are no tokens nothing is changed. */
static void test_biases(void)
{
    static const int32_t ids[] = {2, -1, 7};
    static const struct token_bias biases[] = {{2, -3}, {7, 1}, {0, 0.5f}};
    float logits[3] = {1, 1, 1};
    EXPECT(choose_changed(
               logits, (struct token_past){ids, 3, 3},
               (struct token_choice_options){.repetition_penalty = 2, .biases = biases, .n_biases = 3}) == 0,
           "the bias does not win");
    expect_logits(logits, 1.5f, 1, -4);
}

/* Probabilities of all tokens sum to one, and those in front are the most probable. */
static void test_rates(void)
{
    enum { N = 6 };
    static const float logits[N] = {0.5f, 2, -1, 2, 9, 0};
    struct token_probability row[1 + N];
    double sum = 0;
    for (int32_t id = 0; id < N; id++) {
        token_rate(row, 0, logits, N, N, id);
        EXPECT(row[0].id == id, "%d", row[0].id);
        sum += exp(row[0].log_p);
    }
    EXPECT(fabs(sum - 1) < 1e-6, "the probabilities sum to %g", sum);
    token_rate(row, N, logits, 4, N, 2); /* two words that no text has */
    EXPECT(row[0].id == 2 && row[1].id == 1 && row[2].id == 3 && row[3].id == 0 && row[4].id == 2 &&
               row[5].id == -1 && row[6].id == -1,
           "%d %d %d %d %d %d", row[1].id, row[2].id, row[3].id, row[4].id, row[5].id, row[6].id);
    EXPECT(row[4].log_p == row[0].log_p && row[5].log_p == -INFINITY, "%g", (double)row[4].log_p);
}

int main(void)
{
    check_vocabulary(1, 1);
    check_vocabulary(5, 1);
    check_vocabulary(33, 2);
    check_vocabulary(1000, 0);
    check_vocabulary(5000, 3);
    check_vocabulary(50257, 1);
    test_largest();
    test_parts(4);
    test_parts(64); /* found by parts of the order */
    test_cuts();
    test_repetition();
    test_new_tokens();
    test_biases();
    test_rates();
    return 0;
}
