#include "data/gpt/set_blend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The set that lags its share the most at sample i. */
static int find_behind(const double *shares, const int64_t *taken, int n_sets, int64_t i)
{
    double worst = 0, samples = (double)(i > 1 ? i : 1);
    int behind = 0;
    for (int d = 0; d < n_sets; d++) {
        double error = shares[d] * samples - (double)taken[d];
        if (d == 0 || error > worst) {
            worst = error;
            behind = d;
        }
    }
    return behind;
}

static void fill(struct set_blend *b)
{
    int64_t taken[SET_BLEND_MOST_SETS] = {0}, *kept = b->taken;
    for (int64_t i = 0; i < b->n; i++) {
        if (i % SET_BLEND_STRIDE == 0) {
            memcpy(kept, taken, (size_t)b->n_sets * sizeof *taken);
            kept += b->n_sets;
        }
        taken[find_behind(b->shares, taken, b->n_sets, i)]++;
    }
}

/* The sum of n terms in numpy's order, whose rounding decides between sets that lag equally. */
static double sum_as_numpy(const double *terms, int n)
{
    enum { LANES = 8, MOST_IN_LANES = 128 };
    double lane[LANES] = {0}, sum = 0;
    if (n > MOST_IN_LANES) {
        int half = n / 2 - n / 2 % LANES;
        return sum_as_numpy(terms, half) + sum_as_numpy(terms + half, n - half);
    }
    int whole = n - n % LANES;
    for (int i = 0; i < whole; i++) {
        lane[i % LANES] += terms[i];
    }
    if (whole > 0) {
        sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
    for (int i = whole; i < n; i++) {
        sum += terms[i];
    }
    return sum;
}

struct status set_blend_build(struct set_blend *b, int64_t n, const double *shares, int n_sets)
{
    *b = (struct set_blend){.n_sets = n_sets, .n = n};
    FAIL_IF(n_sets > SET_BLEND_MOST_SETS, STATUS_USAGE, "%d sets are blended; the limit is %d", n_sets,
            SET_BLEND_MOST_SETS);
    double sum = sum_as_numpy(shares, n_sets); /* 1 but for rounding: the original divides twice */
    for (int d = 0; d < n_sets; d++) {
        b->shares[d] = shares[d] / sum;
    }
    b->taken = malloc((size_t)(n / SET_BLEND_STRIDE + 1) * (size_t)n_sets * sizeof *b->taken);
    if (b->taken == NULL) {
        set_blend_fini(b);
        return status_error(STATUS_MEMORY, "out of memory to blend %lld samples of %d sets", (long long)n,
                            n_sets);
    }
    fill(b);
    return status_ok();
}

void set_blend_fini(struct set_blend *b)
{
    free(b->taken);
    *b = (struct set_blend){0};
}

struct set_blend_sample set_blend_at(const struct set_blend *b, int64_t i)
{
    int64_t at = i % b->n, kept = at / SET_BLEND_STRIDE, taken[SET_BLEND_MOST_SETS];
    memcpy(taken, b->taken + kept * b->n_sets, (size_t)b->n_sets * sizeof *taken);
    for (int64_t k = kept * SET_BLEND_STRIDE; k < at; k++) {
        taken[find_behind(b->shares, taken, b->n_sets, k)]++;
    }
    int set = find_behind(b->shares, taken, b->n_sets, at);
    return (struct set_blend_sample){.set = set, .number = taken[set]};
}

void set_blend_shares(double *shares, const double *weights, int n_sets)
{
    double sum = 0;
    for (int d = 0; d < n_sets; d++) {
        sum += weights[d];
    }
    for (int d = 0; d < n_sets; d++) {
        shares[d] = weights[d] / sum;
    }
}

int64_t set_blend_wanted(int64_t n, double share)
{
    return (int64_t)ceil((double)n * share * 1.005);
}
