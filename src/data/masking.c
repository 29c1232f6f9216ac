#include "data/masking.h"

#include <math.h>
#include <stdbool.h>

static bool is_candidate(const struct masking_rules *rules, int32_t id)
{
    return id != rules->cls_id && id != rules->sep_id;
}

static int64_t count_predictions(const struct masking_rules *rules, int64_t n, int64_t n_candidates)
{
    int64_t wanted = (int64_t)nearbyint((double)n * rules->masked_lm_prob);
    wanted = wanted < 1 ? 1 : wanted;
    wanted = wanted > rules->max_predictions ? rules->max_predictions : wanted;
    return wanted > n_candidates ? n_candidates : wanted;
}

static int32_t replacement(const struct masking_rules *rules, int32_t id, struct rng_stream *r)
{
    uint32_t tenth = rng_below(r, 10);
    if (tenth < 8) {
        return rules->mask_id;
    }
    return tenth == 8 ? id : (int32_t)rng_below(r, (uint32_t)rules->vocab_size);
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
