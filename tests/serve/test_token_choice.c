/* The choice of a token is what a sort of all logits gives, for any vocabulary and options; the cuts of a
 * distribution are what they say; and what a text has changes logits as it should. */
#include "core/rng.h"
#include "ops/ops.h"
#include "serve/token_choice.h"
#include "test.h"

#include <string.h>

/* ---- a row ---- */

enum { TOLD = 8 };

/* What is told of a row of logits[0..n), of which the first n_tokens may be chosen. */
struct told {
    int32_t tokens[TOLD];
    float log_ps[TOLD];
};

static struct told ask_words(float *logits, int64_t n_tokens, int64_t n, const struct token_question *q)
{
    struct told t;
    struct token_choice c;
    struct exec x = {.device = &device_cpu, .ops = ops_cpu(), .layer_index = -1};
    void *block = malloc(choice_room_parts(NULL, 1, n).bytes);
    EXPECT(block != NULL, "no memory");
    EXPECT_OK(token_choice_init(&c, n));
    token_choice_begin(&c, choice_room_parts(block, 1, n));
    EXPECT(token_choice_add(&c, q), "a row has no room");
    for (int64_t i = 0; i < n; i++) {
        EXPECT(c.changes[i] == 0, "token %lld counts in the next row", (long long)i);
    }
    x.ops->choose_tokens(&x, tensor_2d(t.tokens, DTYPE_I32, 1, TOLD), tensor_2d(t.log_ps, DTYPE_F32, 1, TOLD),
                         c.parts.changes, tensor_2d(logits, DTYPE_F32, 1, n), c.parts.options, c.parts.starts,
                         n_tokens, n);
    EXPECT_OK(x.status);
    token_choice_fini(&c);
    free(block);
    return t;
}

static int32_t choose(float *logits, int64_t n, const struct token_choice_options *o, double random)
{
    const struct token_question q = {.label = -1, .options = o, .random = random};
    return ask_words(logits, n, n, &q).tokens[0];
}

/* ---- the sort ---- */

struct candidate {
    float logit, weight;
    int32_t id;
};

static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit) - (x->logit > y->logit)
                                : (x->id > y->id) - (x->id < y->id);
}

/* All candidates, sorted; the caller frees them. */
static struct candidate *sorted(const float *logits, int64_t n)
{
    struct candidate *c = malloc((size_t)n * sizeof *c);
    EXPECT(c != NULL, "no memory");
    for (int32_t i = 0; i < n; i++) {
        c[i] = (struct candidate){logits[i], 0, i};
    }
    qsort(c, (size_t)n, sizeof *c, compare);
    return c;
}

static int64_t cut_improbable(const struct candidate *c, int64_t n, double min_p)
{
    while (n > 1 && (double)c[n - 1].weight < min_p) {
        n--;
    }
    return n;
}

/* The number of candidates, sorted, that top_k, top_p and min_p leave. */
static int64_t cut(struct candidate *c, int64_t n, const struct token_choice_options *o)
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
    struct candidate *c = sorted(logits, n);
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
        int32_t id = choose(logits, n, &o, random);
        EXPECT(id == wanted, "of %lld, k %lld, p %g: %d, and by sorting %d", (long long)n, (long long)o.top_k,
               o.top_p, id, wanted);
    }
    free(logits);
}

/* Of tokens that are equally probable each has its part of [0, 1), without the part's end. */
static void test_parts(int64_t n)
{
    float logits[64] = {0};
    const struct token_choice_options o = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    for (int64_t i = 0; i < n; i++) {
        double begin = (double)i / (double)n, last = (double)(i + 1) / (double)n - 0x1p-53;
        int32_t a = choose(logits, n, &o, begin), b = choose(logits, n, &o, last);
        EXPECT(a == i && b == i, "of %lld: %d and %d, not %lld", (long long)n, a, b, (long long)i);
    }
}

/* ---- cuts ---- */

static void count_choices(int counts[5], const struct token_choice_options *o)
{
    enum { DRAWS = 4000 };
    memset(counts, 0, 5 * sizeof *counts);
    for (uint64_t i = 0; i < DRAWS; i++) {
        /* probabilities 0.4, 0.3, 0.2, 0.1, 0 */
        float logits[5] = {logf(0.2f), logf(0.4f), logf(0.1f), logf(0.3f), -200};
        counts[choose(logits, 5, o, rng_uniform_at(9, i))]++;
    }
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

/* ---- what a text has ---- */

/* The token that is the most probable one of three with logits[0..3) once they are changed. */
static int32_t largest_behind(const float logits[3], struct token_past past, struct token_choice_options o)
{
    float changed[3];
    o.top_p = 1;
    memcpy(changed, logits, sizeof changed);
    const struct token_question q = {.label = -1, .options = &o, .past = past};
    int32_t id = ask_words(changed, 3, 3, &q).tokens[0];
    EXPECT(memcmp(changed, logits, sizeof changed) == 0, "the model's logits are changed");
    return id;
}

/* Whether token 0 is worth `at`, to a hundredth, where token 1 has a logit that is not changed. */
static void expect_worth(float logit, float at, struct token_past past, const struct token_choice_options *o)
{
    const float below[3] = {logit, at - 0.01f, -100}, above[3] = {logit, at + 0.01f, -100};
    int32_t a = largest_behind(below, past, *o), b = largest_behind(above, past, *o);
    EXPECT(a == 0 && b == 1, "a logit of %g is not worth %g: %d, %d", (double)logit, (double)at, a, b);
}

/* Once for each token, whatever its sign. */
static void test_repetition(void)
{
    static const int32_t ids[] = {0, 2, 0};
    const struct token_past past = {ids, 2, 3};
    const struct token_choice_options o = {.repetition_penalty = 2};
    expect_worth(3, 1.5f, past, &o);
    expect_worth(-1, -2, past, &o);
    expect_worth(3, 3, (struct token_past){ids, 0, 0}, &o);
}

/* What was read does not count; what was generated counts each time, and once. */
static void test_new_tokens(void)
{
    static const int32_t ids[] = {0, 0, 0, 2, 0};
    struct token_choice_options o = {
        .repetition_penalty = 1, .presence_penalty = 0.25, .frequency_penalty = 0.5};
    expect_worth(1, -0.25f, (struct token_past){ids, 2, 5}, &o);
    expect_worth(1, 1, (struct token_past){ids, 2, 2}, &o);
    o.frequency_penalty = 0;
    expect_worth(1, 0.75f, (struct token_past){ids, 2, 5}, &o);
    o.presence_penalty = -0.25;
    expect_worth(1, 1.25f, (struct token_past){ids, 2, 5}, &o);
}

/* Biases go before penalties; of ids that are no tokens nothing is changed. */
static void test_biases(void)
{
    static const int32_t ids[] = {0, -1, 7};
    static const struct token_bias biases[] = {{0, -3}, {7, 1}};
    const struct token_choice_options o = {.repetition_penalty = 2, .biases = biases, .n_biases = 2};
    expect_worth(1, -4, (struct token_past){ids, 3, 3}, &o);
    expect_worth(1, -2, (struct token_past){ids, 0, 0}, &o);
}

/* A group ends where the room for changes does, and the row goes to the next one whole. */
static void test_groups(void)
{
    enum { N = 5 };
    static const int32_t ids[] = {0, 1, 2, 0};
    static char block[1024];
    const struct token_choice_options o = {.repetition_penalty = 2};
    struct token_question q = {.label = -1, .options = &o, .past = {ids, 4, 4}};
    struct token_choice c;
    EXPECT(choice_room_parts(NULL, 3, N).bytes <= sizeof block, "no room");
    EXPECT_OK(token_choice_init(&c, N));
    token_choice_begin(&c, choice_room_parts(block, 3, N));
    EXPECT(token_choice_add(&c, &q) && !token_choice_add(&c, &q) && c.n_rows == 1 && c.n_changes == 3,
           "%lld rows, %lld changes", (long long)c.n_rows, (long long)c.n_changes);
    q.label = 4; /* which is rated as the model has it */
    EXPECT(token_choice_add(&c, &q) && c.n_rows == 2 && c.n_changes == 3, "%lld rows", (long long)c.n_rows);
    token_choice_begin(&c, choice_room_parts(block, 3, N));
    q.label = -1;
    EXPECT(token_choice_add(&c, &q), "a row has no room in the next group");
    token_choice_fini(&c);
}

/* ---- probabilities ---- */

/* Probabilities of all tokens sum to one, and those in front are the most probable. */
static void test_rates(void)
{
    enum { N = 6 };
    float logits[N] = {0.5f, 2, -1, 2, 9, 0};
    const struct token_choice_options o = {.top_p = 1, .repetition_penalty = 1};
    struct token_question q = {.n_rated = 1, .options = &o};
    double sum = 0;
    for (q.label = 0; q.label < N; q.label++) {
        struct told t = ask_words(logits, N, N, &q);
        EXPECT(t.tokens[0] == q.label && t.tokens[1] == -1, "%d, %d", t.tokens[0], t.tokens[1]);
        sum += exp(t.log_ps[0]);
    }
    EXPECT(fabs(sum - 1) < 1e-6, "the probabilities sum to %g", sum);
    q.label = 2, q.n_rated = N;
    struct told t = ask_words(logits, 4, N, &q); /* two words that no text has */
    EXPECT(t.tokens[0] == 2 && t.tokens[1] == 1 && t.tokens[2] == 3 && t.tokens[3] == 0 && t.tokens[4] == 2 &&
               t.tokens[5] == -1,
           "%d %d %d %d %d", t.tokens[1], t.tokens[2], t.tokens[3], t.tokens[4], t.tokens[5]);
    EXPECT(t.log_ps[4] == t.log_ps[0] && t.log_ps[5] == 0, "%g", (double)t.log_ps[4]);
    logits[5] = NAN;
    t = ask_words(logits, 4, N, &q);
    EXPECT(t.tokens[0] == -1 && isnan(t.log_ps[0]), "a row that is not finite tells %d", t.tokens[0]);
}

int main(void)
{
    check_vocabulary(1, 1);
    check_vocabulary(5, 1);
    check_vocabulary(33, 2);
    check_vocabulary(1000, 0);
    check_vocabulary(5000, 3);
    check_vocabulary(50257, 1);
    test_parts(4);
    test_parts(64); /* found by parts of the order */
    test_cuts();
    test_repetition();
    test_new_tokens();
    test_biases();
    test_groups();
    test_rates();
    return 0;
}
