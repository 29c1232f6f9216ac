/* schedule: the learning rate of an optimizer step. */
#ifndef KILN_OPTIM_SCHEDULE_H
#define KILN_OPTIM_SCHEDULE_H

#include "core/batch_growth.h"

#include <stdbool.h>

enum schedule_kind {
    SCHEDULE_POLY,   /* warm-up, then (1 - p)^degree: the replaced pre-training script, degree 0.5 */
    SCHEDULE_LINEAR, /* warm-up, then linearly to 0 at the end: fine-tuning */
    SCHEDULE_CONSTANT,
    /* warm-up, a constant part, then the rest by a power: the replaced DeepSpeed script */
    SCHEDULE_POLY_CONSTANT,
    SCHEDULE_WARMUP, /* DeepSpeed's WarmupLR and WarmupDecayLR, counted in steps */
    SCHEDULE_ANNEAL, /* Megatron-LM's AnnealingLR, counted in samples */
};

/* How SCHEDULE_ANNEAL falls. */
enum schedule_decay { SCHEDULE_DECAY_CONSTANT, SCHEDULE_DECAY_LINEAR, SCHEDULE_DECAY_COSINE };

struct schedule {
    enum schedule_kind kind;
    double base;     /* the learning rate at the end of the warm-up */
    double warmup;   /* fraction of the steps */
    double degree;   /* degree of the poly schedules */
    int64_t n_steps; /* T */
    double constant; /* SCHEDULE_POLY_CONSTANT: fraction of the steps, after the warm-up */

    /* SCHEDULE_WARMUP: from `min` to `max` in warmup_steps, then linearly back to `min` at decay_steps (0: it
     * stays). */
    double min, max;
    int64_t warmup_steps, decay_steps;
    bool is_log; /* the rise is logarithmic, else linear */

    /* SCHEDULE_ANNEAL: from 0 to `max` in warmup_samples, then to `min` at decay_samples. */
    enum schedule_decay decay;
    int64_t warmup_samples, decay_samples;
    struct batch_growth growth; /* the samples of each step */
};

/* The rate of step k, 1 <= k <= T, with p = k / T and w the warm-up: p < w:     base p / w poly:      base
 * (1 - p)^degree; not renormalised where the warm-up ends, so the rate drops there, and it is 0 at k = T,
 * both as in the replaced script (docs/quirks.md) linear:    base (1 - p) / (1 - w) constant:  base poly,
 * constant: base until p = w + c, then base ((1 - p) / (1 - w - c))^degree, without a jump SCHEDULE_WARMUP
 * counts steps: i = k - 2, W = warmup_steps, D = decay_steps.  As in DeepSpeed 0.7, the first step has the
 * optimizer's own rate, and the count begins after it (docs/quirks.md): k = 1:     base i < W:     min +
 * (max - min) i / W, or log(i + 1) / log(W) for i / W D = 0:     max else:      min + (max - min) (D - i)
 * / (D - W), at least min SCHEDULE_ANNEAL counts samples: n before step k, W = warmup_samples, D =
 * decay_samples, r = (n - W) / (D - W). The count is moved after a step, so the first step has the rate 0
 * (docs/quirks.md): n <= W:    max n / W constant:  max n > D:     min linear:    min + (max - min) (1 -
 * r) cosine:    min + (max - min) (1 + cos(pi r)) / 2 */
double schedule_rate(const struct schedule *s, int64_t k);

/* The rate after the part p of the run, in [0, 1]; for runs whose steps are not counted.  Not of
 * SCHEDULE_WARMUP and SCHEDULE_ANNEAL. */
double schedule_rate_at(const struct schedule *s, double p);

#endif
