/* schedule: the learning rate of an optimizer step. */
#ifndef KILN_OPTIM_SCHEDULE_H
#define KILN_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum schedule_kind {
    SCHEDULE_POLY,   /* warm-up, then (1 - p)^degree: the replaced pre-training script, degree 0.5 */
    SCHEDULE_LINEAR, /* warm-up, then linearly to 0 at the end: fine-tuning */
    SCHEDULE_CONSTANT,
    /* warm-up, a constant part, then the rest by a power: the replaced DeepSpeed script */
    SCHEDULE_POLY_CONSTANT,
    SCHEDULE_WARMUP, /* DeepSpeed's WarmupLR and WarmupDecayLR, counted in steps */
};

struct schedule {
    enum schedule_kind kind;
    double base;     /* the learning rate at the end of the warm-up */
    double warmup;   /* fraction of the steps */
    double degree;   /* of the poly schedules */
    int64_t n_steps; /* T */
    double constant; /* SCHEDULE_POLY_CONSTANT: fraction of the steps, after the warm-up */

    /* SCHEDULE_WARMUP: from `min` to `max` in warmup_steps, then linearly back to `min` at decay_steps (0: it
     * stays). */
    double min, max;
    int64_t warmup_steps, decay_steps;
    bool is_log; /* the rise is logarithmic, else linear */
};

/* The rate of step k, 1 <= k <= T, with p = k / T and w the warm-up:
 *     p < w:     base p / w
 *     poly:      base (1 - p)^degree; not renormalised where the warm-up ends, so the rate drops there,
 *                and it is 0 at k = T, both as in the replaced script (docs/quirks.md)
 *     linear:    base (1 - p) / (1 - w)
 *     constant:  base
 *     poly, constant: base until p = w + c, then base ((1 - p) / (1 - w - c))^degree, without a jump
 * SCHEDULE_WARMUP counts steps: i = k - 2, W = warmup_steps, D = decay_steps.  As in DeepSpeed 0.7, the first
 * step has the optimizer's own rate, and the count begins after it (docs/quirks.md):
 *     k = 1:     base
 *     i < W:     min + (max - min) i / W, or log(i + 1) / log(W) for i / W
 *     D = 0:     max
 *     else:      min + (max - min) (D - i) / (D - W), at least min */
double schedule_rate(const struct schedule *s, int64_t k);

/* The rate after the part p of the run, in [0, 1]; for runs whose steps are not counted.  Not of
 * SCHEDULE_WARMUP. */
double schedule_rate_at(const struct schedule *s, double p);

#endif
