/* The choice of a token is what a sort of all candidates, the largest logit first, would give.  A sort of
 * 250,880 logits would take longer than a small model's pass.  top_k keeps its candidates in a heap; whatever
 * asks for the first candidates up to a sum of weights finds them as quickselect does, by parts of the order
 * that are left unsorted (Hoare 1961, algorithm 65: find). */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A token that may be chosen. */
struct candidate {
    float logit, weight; /* the probability is the weight over the sum of all weights */
    int32_t id;
};

struct choice_call {
    tensor tokens, log_ps, changes, logits, options;
    const int32_t *starts;
    int64_t n_tokens, n_words;
};

/* ---- what changes logits ---- */

/* Puts the changed logit in its place, and the logit before where the change was. */
static void change(float *logits, float *change, const double *options)
{
    float *logit = &logits[(int32_t)change[CHANGE_ID]], before = *logit;
    double penalty = options[CHOICE_REPETITION], n_new = (double)change[CHANGE_N_NEW];
    *logit += change[CHANGE_ADD];
    if (change[CHANGE_WAS] != 0 && penalty != 1) {
        *logit *= (float)(*logit < 0 ? penalty : 1 / penalty);
    }
    if (n_new > 0) {
        *logit -= (float)(n_new * options[CHOICE_FREQUENCY] + options[CHOICE_PRESENCE]);
    }
    change[CHANGE_ADD] = before;
}

static void change_back(float *logits, const float *change)
{
    logits[(int32_t)change[CHANGE_ID]] = change[CHANGE_ADD];
}

/* ---- the order ---- */

static bool goes_before(struct candidate a, struct candidate b)
{
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

static int compare(const void *a, const void *b)
{
    return goes_before(*(const struct candidate *)a, *(const struct candidate *)b) ? -1 : 1;
}

static void swap(struct candidate *a, struct candidate *b)
{
    struct candidate t = *a;
    *a = *b;
    *b = t;
}

/* ---- the k largest ---- */

/* Moves element i down a heap of n whose first is the one that goes last. */
static void sink(struct candidate *heap, int64_t n, int64_t i)
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
static void take_largest(struct candidate *heap, int64_t k, const float *logits, int64_t n)
{
    for (int64_t i = 0; i < k; i++) {
        heap[i] = (struct candidate){logits[i], 0, (int32_t)i};
    }
    for (int64_t i = k / 2; i-- > 0;) {
        sink(heap, k, i);
    }
    for (int64_t i = k; i < n; i++) { /* the one that is there has the smaller id of two equal logits */
        if (logits[i] > heap[0].logit) {
            heap[0] = (struct candidate){logits[i], 0, (int32_t)i};
            sink(heap, k, 0);
        }
    }
}

/* ---- the first up to a sum ---- */

/* Moves what goes before a pivot to the front of c[0..n); returns the pivot's place. */
static int64_t part(struct candidate *c, int64_t n)
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

static double sum_of(const struct candidate *c, int64_t n)
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
static int64_t first_up_to(struct candidate *c, int64_t n, double wanted, bool above)
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

static int32_t largest(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* The candidates that top_k leaves. */
static int64_t take_candidates(struct candidate *c, const float *logits, int64_t n, double top_k)
{
    if (top_k > 0 && top_k < (double)n) {
        take_largest(c, (int64_t)top_k, logits, n);
        return (int64_t)top_k;
    }
    for (int64_t i = 0; i < n; i++) {
        c[i] = (struct candidate){logits[i], 0, (int32_t)i};
    }
    return n;
}

static void weigh(struct candidate *c, int64_t n, double temperature)
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
static int64_t take_probable(struct candidate *c, int64_t n, double min_p)
{
    int64_t n_left = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((double)c[i].weight >= min_p) {
            swap(&c[i], &c[n_left++]);
        }
    }
    return n_left;
}

static int32_t choose(struct candidate *all, const float *logits, int64_t n_tokens, const double *options)
{
    double temperature = options[CHOICE_TEMPERATURE], top_p = options[CHOICE_TOP_P],
           min_p = options[CHOICE_MIN_P];
    if (temperature == 0) {
        return largest(logits, n_tokens);
    }
    int64_t n = take_candidates(all, logits, n_tokens, options[CHOICE_TOP_K]);
    weigh(all, n, temperature);
    if (top_p < 1) {
        n = first_up_to(all, n, top_p * sum_of(all, n), false);
    }
    n = min_p > 0 ? take_probable(all, n, min_p) : n;
    return all[first_up_to(all, n, options[CHOICE_RANDOM] * sum_of(all, n), true) - 1].id;
}

/* ---- a row ---- */

static bool all_finite(const float *v, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite &= isfinite(v[i]) != 0;
    }
    return finite;
}

/* The first n in the order, by insertion into a sorted list; returns their number. */
static int64_t take_most_probable(int32_t *best, int64_t n, const float *logits, int64_t n_tokens)
{
    int64_t n_best = 0;
    for (int32_t id = 0; id < n_tokens && n > 0; id++) {
        if (n_best == n && logits[id] <= logits[best[n_best - 1]]) {
            continue;
        }
        n_best += n_best < n;
        int64_t place = n_best - 1;
        for (; place > 0 && logits[best[place - 1]] < logits[id]; place--) {
            best[place] = best[place - 1];
        }
        best[place] = id;
    }
    return n_best;
}

static void rate(int32_t *tokens, float *log_ps, int64_t n_rated, const float *logits, int64_t n_tokens,
                 int64_t n_words, void *lane)
{
    float max = softmax_maximum(logits, n_words);
    double sum = softmax_exponentials(lane, logits, n_words, max);
    int64_t n = 1 + take_most_probable(tokens + 1, n_rated - 1, logits, n_tokens);
    for (int64_t k = 0; k < n; k++) {
        log_ps[k] = -softmax_loss(sum, max, logits[tokens[k]]);
    }
}

static void choose_item(const void *context, int64_t row, void *lane)
{
    const struct choice_call *c = context;
    int64_t most = tensor_cols(c->tokens), first = c->starts[row], end = c->starts[row + 1];
    const double *options = (const double *)c->options.data + row * CHOICE_N_OPTIONS;
    float *logits = (float *)c->logits.data + row * c->logits.strides[0];
    float *changes = c->changes.data, *log_ps = (float *)c->log_ps.data + row * most;
    int32_t *tokens = (int32_t *)c->tokens.data + row * most, label = (int32_t)options[CHOICE_LABEL];
    memset(tokens, 0xff, (size_t)most * sizeof *tokens);
    memset(log_ps, 0, (size_t)most * sizeof *log_ps);
    if (!all_finite(logits, c->n_words)) {
        log_ps[0] = NAN;
        return;
    }
    if (label < 0) {
        for (int64_t i = first; i < end; i++) {
            change(logits, changes + i * CHANGE_N_COLUMNS, options);
        }
        label = choose(lane, logits, c->n_tokens, options);
        for (int64_t i = first; i < end; i++) {
            change_back(logits, changes + i * CHANGE_N_COLUMNS);
        }
    }
    tokens[0] = label;
    if (options[CHOICE_N_RATED] > 0) {
        rate(tokens, log_ps, (int64_t)options[CHOICE_N_RATED], logits, c->n_tokens, c->n_words, lane);
    }
}

/* True if labels, counts and token ids, which are used as indices, are in range; else STATUS_USAGE sticks. */
static bool accept_choice(struct exec *x, const char *op, const struct choice_call *c)
{
    const double *options = c->options.data;
    const float *changes = c->changes.data;
    for (int64_t row = 0; row < tensor_rows(c->logits); row++, options += CHOICE_N_OPTIONS) {
        if (!(options[CHOICE_LABEL] >= -1 && options[CHOICE_LABEL] < (double)c->n_words &&
              options[CHOICE_N_RATED] <= (double)tensor_cols(c->tokens))) {
            exec_fail(x, STATUS_USAGE, op, "label %g of row %lld, of which %g tokens are rated",
                      options[CHOICE_LABEL], (long long)row, options[CHOICE_N_RATED]);
        }
    }
    for (int64_t i = 0; i < c->starts[tensor_rows(c->logits)]; i++, changes += CHANGE_N_COLUMNS) {
        if (!(changes[CHANGE_ID] >= 0 && changes[CHANGE_ID] < (float)c->n_words)) {
            exec_fail(x, STATUS_USAGE, op, "change %lld is of token %g", (long long)i,
                      (double)changes[CHANGE_ID]);
        }
    }
    return !failed(x->status);
}

static void cpu_choose_tokens(struct exec *x, tensor tokens, tensor log_ps, tensor changes, tensor logits,
                              tensor options, tensor starts, int64_t n_tokens, int64_t n_words)
{
    const char *op = "choose_tokens";
    struct choice_call c = {tokens, log_ps, changes, logits, options, starts.data, n_tokens, n_words};
    if (!accept_tensors(x, op, ACCEPT_LIST(logits), ACCEPT_LIST(log_ps, changes)) ||
        !accept_indices(x, op, "change", starts, 0, tensor_rows(changes) + 1)) {
        return;
    }
    if (logits.dtype != DTYPE_F32 || tokens.dtype != DTYPE_I32 || options.dtype != DTYPE_F64) {
        exec_fail(x, STATUS_USAGE, op,
                  "logits must be fp32, tokens i32 and options fp64, but are %s, %s and %s",
                  dtype_name(logits.dtype), dtype_name(tokens.dtype), dtype_name(options.dtype));
        return;
    }
    if (accept_choice(x, op, &c)) {
        size_t lane = (size_t)n_words * sizeof(struct candidate);
        lanes_run(x, op, tensor_rows(logits), lane, choose_item, &c);
    }
}

KERNEL_FILL(token_choice, struct ops)
{
    t->choose_tokens = cpu_choose_tokens;
}
