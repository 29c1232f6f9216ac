#include "data/bert/masking.h"

#include "core/status.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static bool is_candidate(const struct masking_rules *rules, int32_t id)
{
    return id != rules->cls_id && id != rules->sep_id;
}

/* nearbyint rounds half to even, as round() of the replaced Python script does. */
static int64_t count_predictions(const struct masking_rules *rules, int64_t n, int64_t n_candidates)
{
    int64_t wanted = (int64_t)nearbyint((double)n * rules->masked_lm_prob);
    wanted = wanted < 1 ? 1 : wanted;
    wanted = wanted > rules->max_predictions ? rules->max_predictions : wanted;
    return wanted > n_candidates ? n_candidates : wanted;
}

static int32_t replacement(const struct masking_rules *rules, int32_t id, struct rng_stream *r)
{
    enum { MASKED = 8, KEPT = 9 }; /* tenths: below this */
    double tenth = rules->keep_rate == NULL ? rng_below(r, 10) : 10 * rng_uniform(r);
    double masked = rules->keep_rate == NULL ? MASKED : KEPT - 10 * *rules->keep_rate;
    if (tenth < masked) {
        return rules->mask_id;
    }
    return tenth < KEPT ? id : (int32_t)rng_below(r, (uint32_t)rules->vocab_size);
}

static bool continues(const struct masking_rules *rules, const int32_t *ids, int64_t i)
{
    return is_candidate(rules, ids[i]) && rules->continues[ids[i]];
}

/* The first token of each word.  A piece that continues a word whose beginning is not in the sequence counts
 * as a word. */
static int64_t find_words(const struct masking_rules *rules, const int32_t *ids, int64_t n, uint16_t *first)
{
    int64_t n_words = 0;
    for (int64_t i = 0; i < n; i++) {
        bool goes_on = i > 0 && is_candidate(rules, ids[i - 1]) && continues(rules, ids, i);
        if (is_candidate(rules, ids[i]) && !goes_on) {
            first[n_words++] = (uint16_t)i;
        }
    }
    return n_words;
}

/* Puts tokens [begin, end) into a list of m places that ascend. */
static void insert_places(int32_t *positions, int64_t m, int64_t begin, int64_t end)
{
    int64_t at = m, n = end - begin;
    for (; at > 0 && positions[at - 1] > begin; at--) {
        positions[at - 1 + n] = positions[at - 1];
    }
    for (int64_t i = 0; i < n; i++) {
        positions[at + i] = (int32_t)(begin + i);
    }
}

/* Draws words (Fisher and Yates' shuffle, as far as it is needed). */
static int64_t choose_words(const struct masking_rules *rules, const int32_t *ids, int64_t n, int64_t wanted,
                            int32_t *positions, struct rng_stream *r)
{
    uint16_t first[MASKING_MOST_TOKENS];
    CHECK(n <= MASKING_MOST_TOKENS, "whole words of %lld tokens", (long long)n);
    int64_t n_words = find_words(rules, ids, n, first), m = 0;
    for (int64_t left = n_words; left > 0 && m < wanted; left--) {
        int64_t drawn = rng_below(r, (uint32_t)left), begin = first[drawn], end = begin + 1;
        first[drawn] = first[left - 1];
        while (end < n && continues(rules, ids, end)) {
            end++;
        }
        if (m + end - begin <= wanted) {
            insert_places(positions, m, begin, end);
            m += end - begin;
        }
    }
    return m;
}

/* ---- turns ---- */

static uint32_t drawn_for(const struct masking_turns *t, int64_t i)
{
    uint64_t place = (uint64_t)(i + t->shift[i > t->n_first]);
    return rng_philox(t->key, (uint32_t)place, (uint32_t)(place >> 32), 0, 0).word[0];
}

static int compare_units(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Chooses tokens or, with whole words, words by their turns, as far as they fit. */
static int64_t choose_by_turns(const struct masking_rules *rules, const int32_t *ids, int64_t n,
                               int64_t wanted, int32_t *positions)
{
    /* the number drawn for the first token of each unit, with the token's position in the lowest 16 bits */
    uint64_t units[MASKING_MOST_TURNS];
    CHECK(n <= MASKING_MOST_TURNS, "turns of %lld tokens", (long long)n);
    int64_t n_units = 0, m = 0;
    for (int64_t i = 0; i < n; i++) {
        bool goes_on =
            rules->continues != NULL && i > 0 && is_candidate(rules, ids[i - 1]) && continues(rules, ids, i);
        if (is_candidate(rules, ids[i]) && !goes_on) {
            units[n_units++] = (uint64_t)drawn_for(rules->turns, i) << 16 | (uint64_t)i;
        }
    }
    qsort(units, (size_t)n_units, sizeof *units, compare_units);
    int64_t start = (int64_t)(rules->turns->turn * (double)n_units);
    for (int64_t u = 0; u < n_units && m < wanted; u++) {
        int64_t begin = (int64_t)(units[(start + u) % n_units] & 0xffff), end = begin + 1;
        while (rules->continues != NULL && end < n && continues(rules, ids, end)) {
            end++;
        }
        if (m + end - begin <= wanted) {
            insert_places(positions, m, begin, end);
            m += end - begin;
        }
    }
    return m;
}

static int64_t mask_chosen(const struct masking_rules *rules, int32_t *ids, int64_t n, int64_t wanted,
                           int32_t *positions, int32_t *labels, struct rng_stream *r)
{
    int64_t m = rules->turns != NULL ? choose_by_turns(rules, ids, n, wanted, positions)
                                     : choose_words(rules, ids, n, wanted, positions, r);
    for (int64_t i = 0; i < m; i++) {
        labels[i] = ids[positions[i]];
        ids[positions[i]] = replacement(rules, labels[i], r);
    }
    return m;
}

int64_t masking_apply(const struct masking_rules *rules, int32_t *ids, int64_t n, int32_t *positions,
                      int32_t *labels, struct rng_stream *r)
{
    int64_t n_candidates = 0;
    for (int64_t i = 0; i < n; i++) {
        n_candidates += is_candidate(rules, ids[i]);
    }
    int64_t n_predictions = count_predictions(rules, n, n_candidates);
    int64_t m = 0;
    if (rules->continues != NULL || rules->turns != NULL) {
        return mask_chosen(rules, ids, n, n_predictions, positions, labels, r);
    }
    /* Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S): a uniform subset, in
     * order. */
    for (int64_t i = 0; m < n_predictions; i++) {
        if (!is_candidate(rules, ids[i])) {
            continue;
        }
        if (rng_below(r, (uint32_t)n_candidates--) < (uint32_t)(n_predictions - m)) {
            positions[m] = (int32_t)i;
            labels[m++] = ids[i];
            ids[i] = replacement(rules, ids[i], r);
        }
    }
    return m;
}
