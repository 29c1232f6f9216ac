/* What the logits of a classifier mean: probabilities that sum to 1 and the first of the best labels, a
 * probability for each label alone, or the number itself. */
#include "serve/class_logits.h"
#include "test.h"

enum { N = 3 };

static const float logits[N] = {-1, 2, 0.5f};

static void read(struct class_reading out[N], const float values[N], enum label_problem problem)
{
    class_logits_read(out, values, &(struct model_labels){.n = N, .problem = problem});
    for (int64_t k = 0; k < N; k++) {
        EXPECT(out[k].label == k, "label %lld at %lld", (long long)out[k].label, (long long)k);
    }
}

/* e^-1, e^2 and e^0.5, divided by their sum 9.405656811. */
static void one_of_the_labels_holds(void)
{
    static const double wanted[N] = {0.0391126, 0.7855970, 0.1752904};
    static const float large[N] = {500, 500, -500};
    struct class_reading r[N];
    read(r, logits, PROBLEM_SINGLE_LABEL);
    for (int k = 0; k < N; k++) {
        EXPECT_NEAR(r[k].score, wanted[k], 1e-6);
        EXPECT(r[k].holds == (k == 1), "label %d %s", k, r[k].holds ? "holds" : "does not hold");
    }
    read(r, large, PROBLEM_SINGLE_LABEL);
    EXPECT_NEAR(r[0].score, 0.5, 1e-12);
    EXPECT(r[0].holds && !r[1].holds && !r[2].holds, "the first of equals holds");
}

/* 1 / (1 + e^-x), which holds over one half. */
static void each_label_holds_alone(void)
{
    static const double wanted[N] = {0.2689414, 0.8807971, 0.6224593};
    static const float none[N] = {0, -0.5f, 0};
    struct class_reading r[N];
    read(r, logits, PROBLEM_MULTI_LABEL);
    for (int k = 0; k < N; k++) {
        EXPECT_NEAR(r[k].score, wanted[k], 1e-6);
        EXPECT(r[k].holds == (k > 0), "label %d %s", k, r[k].holds ? "holds" : "does not hold");
    }
    read(r, none, PROBLEM_MULTI_LABEL);
    EXPECT(!r[0].holds && !r[1].holds && !r[2].holds, "one half is not over one half");
}

static void numbers_are_told(void)
{
    struct class_reading r[N];
    read(r, logits, PROBLEM_REGRESSION);
    for (int k = 0; k < N; k++) {
        EXPECT(r[k].score == (double)logits[k] && r[k].holds, "number %d is %g", k, r[k].score);
    }
}

int main(void)
{
    one_of_the_labels_holds();
    each_label_holds_alone();
    numbers_are_told();
    return 0;
}
