/* set_blend: which of several sets of samples each sample of a run is from, so that sets take part by their
 * weights.
 *
 * The rule: the next sample is from the set that lags its weight the most, of several the first, and is the
 * set's own next one.  So a longer blend begins as a shorter one.
 *
 * Source: build_blending_indices in megatron/data/helpers.cpp of Megatron-DeepSpeed. */
#ifndef KILN_DATA_GPT_SET_BLEND_H
#define KILN_DATA_GPT_SET_BLEND_H

#include "core/status.h"

#include <stdint.h>

enum { SET_BLEND_MOST_SETS = 254 };

struct set_blend {
    int n_sets;
    double shares[SET_BLEND_MOST_SETS]; /* share of each set in all samples */
    int64_t n;                          /* samples */
    int64_t *taken; /* [n / SET_BLEND_STRIDE + 1, n_sets] samples of each set before every such sample */
};

/* Samples between two kept rows of counts; a sample is found by the rule from the row before it. */
enum { SET_BLEND_STRIDE = 256 };

/* Weights above 0 as shares of their sum; shares may be weights. */
void set_blend_shares(double *shares, const double *weights, int n_sets);

/* Builds a blend of n samples.  STATUS_USAGE: more than SET_BLEND_MOST_SETS sets; STATUS_MEMORY. */
struct status set_blend_build(struct set_blend *b, int64_t n, const double *shares, int n_sets);
void set_blend_fini(struct set_blend *b);

/* Sample i is sample `number` of set `set`.  After the last sample the blend begins again. */
struct set_blend_sample {
    int set;
    int64_t number;
};
struct set_blend_sample set_blend_at(const struct set_blend *b, int64_t i);

/* How many samples a blend of n asks a set with this share for: 0.5 % more than it will take. */
int64_t set_blend_wanted(int64_t n, double share);

#endif
