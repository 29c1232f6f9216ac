/* The rule: what is chosen is what a sort of all candidates, the largest logit first, would give.  A sort
 * of 250,880 logits would take longer than a small model's pass.  top_k keeps its candidates in a heap;
 * whatever asks for the first candidates up to a sum of weights finds them as quickselect does, by parts
 * of the order that are left unsorted (Hoare 1961, algorithm 65: find). */
#include "serve/token_choice.h"

#include <math.h>
#include <stdlib.h>

struct status token_choice_init(struct token_choice *c, int64_t n)
{
    *c = (struct token_choice){.candidates = calloc((size_t)n + 1, sizeof *c->candidates),
                               .counts = calloc((size_t)n + 1, sizeof *c->counts),
                               .n = n};
    return c->candidates != NULL && c->counts != NULL
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a choice of %lld tokens", (long long)n);
}

void token_choice_fini(struct token_choice *c)
{
    free(c->candidates);
    free(c->counts);
    *c = (struct token_choice){0};
}

static int32_t largest(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* ---- what changes logits ---- */

static bool has(const struct token_choice *c, int32_t id)
{
    return id >= 0 && id < c->n;
}

static void add_biases(const struct token_choice *c, float *logits, const struct token_choice_options *o)
{
    for (int64_t i = 0; i < o->n_biases; i++) {
        if (has(c, o->biases[i].id)) {
            logits[o->biases[i].id] += o->biases[i].add;
        }
    }
}

/* Counts ids[0..n), or with sign -1 takes the count back. */
static void count(struct token_choice *c, const int32_t *ids, size_t n, int32_t sign)
{
    for (size_t i = 0; i < n; i++) {
        if (has(c, ids[i])) {
            c->counts[ids[i]] += sign;
        }
    }
}

/* Each token that was there counts once, however often it was there (Keskar et al. 2019,
 * arXiv:1909.05858). */
static void penalize_repetition(struct token_choice *c, float *logits, struct token_past past, double penalty)
{
    for (size_t i = 0; i < past.n; i++) {
        if (has(c, past.ids[i]) && c->counts[past.ids[i]]++ == 0) {
            logits[past.ids[i]] *= (float)(logits[past.ids[i]] < 0 ? penalty : 1 / penalty);
        }
    }
    count(c, past.ids, past.n, -1);
}

/* Of a token's occurrences all lose the frequency's penalty, and the first that of the presence. */
static void penalize_new(struct token_choice *c, float *logits, struct token_past past,
                         const struct token_choice_options *o)
{
    const int32_t *ids = past.ids + past.n_read;
    size_t n = past.n - past.n_read;
    count(c, ids, n, 1);
    for (size_t i = 0; i < n; i++) {
        if (has(c, ids[i]) && c->counts[ids[i]] > 0) {
            logits[ids[i]] -= (float)(c->counts[ids[i]] * o->frequency_penalty + o->presence_penalty);
            c->counts[ids[i]] = 0;
        }
    }
}

static void change_logits(struct token_choice *c, float *logits, struct token_past past,
                          const struct token_choice_options *o)
{
    add_biases(c, logits, o);
    if (o->repetition_penalty != 1) {
        penalize_repetition(c, logits, past, o->repetition_penalty);
    }
    if (o->presence_penalty != 0 || o->frequency_penalty != 0) {
        penalize_new(c, logits, past, o);
    }
}

/* ---- the order ---- */

static bool goes_before(struct token_candidate a, struct token_candidate b)
{
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

static int compare(const void *a, const void *b)
{
    return goes_before(*(const struct token_candidate *)a, *(const struct token_candidate *)b) ? -1 : 1;
}

static void swap(struct token_candidate *a, struct token_candidate *b)
{
    struct token_candidate t = *a;
    *a = *b;
    *b = t;
}

/* ---- the k largest ---- */

/* Moves element i down a heap of n whose first is the one that goes last. */
static void sink(struct token_candidate *heap, int64_t n, int64_t i)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && goes_before(heap[child], heap[child + 1]);
        if (!goes_before(heap[i], heap[child])) {
            return;
        }
        swap(&heap[i], &heap[child]);
    }
}

/* Leaves the k first candidates, unsorted. */
static void take_largest(struct token_candidate *heap, int64_t k, const float *logits, int64_t n)
{
    for (int64_t i = 0; i < k; i++) {
        heap[i] = (struct token_candidate){logits[i], 0, (int32_t)i};
    }
    for (int64_t i = k / 2; i-- > 0;) {
        sink(heap, k, i);
    }
    for (int64_t i = k; i < n; i++) { /* of equal logits the one that is there has the smaller id */
        if (logits[i] > heap[0].logit) {
            heap[0] = (struct token_candidate){logits[i], 0, (int32_t)i};
            sink(heap, k, 0);
        }
    }
}

/* ---- the first up to a sum ---- */

/* Moves what goes before a pivot to the front of c[0..n); returns the pivot's place. */
static int64_t part(struct token_candidate *c, int64_t n)
{
    int64_t middle = n / 2, at = 0;
    if (goes_before(c[middle], c[0])) {
        swap(&c[middle], &c[0]);
    }
    if (goes_before(c[n - 1], c[0])) {
        swap(&c[n - 1], &c[0]);
    }
    if (goes_before(c[middle], c[n - 1])) {
        swap(&c[middle], &c[n - 1]);
    }
    for (int64_t i = 0; i < n - 1; i++) { /* the pivot, of median size, is the last */
        if (goes_before(c[i], c[n - 1])) {
            swap(&c[i], &c[at++]);
        }
    }
    swap(&c[at], &c[n - 1]);
    return at;
}

static double sum_of(const struct token_candidate *c, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)c[i].weight;
    }
    return sum;
}

static bool reaches(double sum, double wanted, bool above)
{
    return above ? sum > wanted : sum >= wanted;
}

/* The number of first candidates whose weights sum to `wanted`, or with `above` to more; all n if they do
 * not. They are then the first ones of c, and the last of them is in its place. */
static int64_t first_up_to(struct token_candidate *c, int64_t n, double wanted, bool above)
{
    enum { FEW = 32 };
    int64_t low = 0, high = n;
    double before = 0;
    while (high - low > FEW) {
        int64_t place = low + part(c + low, high - low);
        double without = before + sum_of(c + low, place - low), with = without + (double)c[place].weight;
        if (reaches(without, wanted, above)) {
            high = place;
        } else if (reaches(with, wanted, above)) {
            return place + 1;
        } else {
            low = place + 1;
            before = with;
        }
    }
    qsort(c + low, (size_t)(high - low), sizeof *c, compare);
    for (; low < high; low++) {
        before += (double)c[low].weight;
        if (reaches(before, wanted, above)) {
            return low + 1;
        }
    }
    return high;
}

/* ---- the choice ---- */

/* The candidates that top_k leaves. */
static int64_t candidates_of(struct token_choice *c, const float *logits,
                             const struct token_choice_options *o)
{
    int64_t n = o->top_k > 0 && o->top_k < c->n ? o->top_k : c->n;
    if (n < c->n) {
        take_largest(c->candidates, n, logits, c->n);
        return n;
    }
    for (int64_t i = 0; i < n; i++) {
        c->candidates[i] = (struct token_candidate){logits[i], 0, (int32_t)i};
    }
    return n;
}

static void weigh(struct token_candidate *c, int64_t n, double temperature)
{
    float max = c[0].logit;
    for (int64_t i = 1; i < n; i++) {
        max = c[i].logit > max ? c[i].logit : max;
    }
    for (int64_t i = 0; i < n; i++) {
        c[i].weight = (float)exp(((double)c[i].logit - (double)max) / temperature);
    }
}

/* Candidates of at least this part of the largest weight, which is 1. */
static int64_t take_probable(struct token_candidate *c, int64_t n, double min_p)
{
    int64_t n_left = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((double)c[i].weight >= min_p) {
            swap(&c[i], &c[n_left++]);
        }
    }
    return n_left;
}

int32_t token_choose(struct token_choice *c, float *logits, struct token_past past,
                     const struct token_choice_options *o, double random)
{
    change_logits(c, logits, past, o);
    if (o->temperature == 0) {
        return largest(logits, c->n);
    }
    struct token_candidate *all = c->candidates;
    int64_t n = candidates_of(c, logits, o);
    weigh(all, n, o->temperature);
    if (o->top_p < 1) {
        n = first_up_to(all, n, o->top_p * sum_of(all, n), false);
    }
    n = o->min_p > 0 ? take_probable(all, n, o->min_p) : n;
    return all[first_up_to(all, n, random * sum_of(all, n), true) - 1].id;
}

/* ---- probabilities ---- */

static double log_sum_exp(const float *logits, int64_t n)
{
    double max = logits[largest(logits, n)], sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += exp(logits[i] - max);
    }
    return max + log(sum);
}

void token_rate(struct token_probability *row, int64_t n_alternatives, const float *logits, int64_t n_choices,
                int64_t n, int32_t id)
{
    double all = log_sum_exp(logits, n);
    int64_t n_best = 0;
    struct token_probability *best = row + 1;
    for (int64_t i = 0; i < n_alternatives; i++) {
        best[i] = (struct token_probability){-1, -INFINITY};
    }
    for (int32_t i = 0; i < n_choices && n_alternatives > 0; i++) { /* by insertion into a sorted list */
        if (n_best == n_alternatives && logits[i] <= logits[best[n_best - 1].id]) {
            continue;
        }
        n_best += n_best < n_alternatives;
        int64_t place = n_best - 1;
        for (; place > 0 && logits[best[place - 1].id] < logits[i]; place--) {
            best[place] = best[place - 1];
        }
        best[place].id = i;
    }
    row[0].id = id;
    for (int64_t i = 0; i <= n_best; i++) {
        row[i].log_p = (float)(logits[row[i].id] - all);
    }
}
