/* schedule: the learning rate of an optimizer step. */
#ifndef KILN_OPTIM_SCHEDULE_H
#define KILN_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum schedule_kind {
    SCHEDULE_POLY,   /* warm-up, then (1 - p)^degree: the replaced pre-training script, degree 0.5 */
    SCHEDULE_LINEAR, /* warm-up, then a line to 0 at the end: fine-tuning */
    SCHEDULE_CONSTANT,
    SCHEDULE_POLY_CONSTANT, /* warm-up, a constant part, then the rest by a power: the replaced DeepSpeed script */
    SCHEDULE_WARMUP,        /* DeepSpeed's WarmupLR and WarmupDecayLR, counted in steps */
};

struct schedule {
    enum schedule_kind kind;
    double base;     /* the learning rate at the end of the warm-up */
    double warmup;   /* fraction of the steps */
    double degree;   /* of the poly schedules */
    int64_t n_steps; /* T */
    double constant; /* SCHEDULE_POLY_CONSTANT: fraction of the steps, behind the warm-up */

    /* SCHEDULE_WARMUP: from `min` to `max` in warmup_steps, then on a line to 0 at decay_steps (0: it stays). */
    double min, max;
    int64_t warmup_steps, decay_steps;
    bool is_log; /* the rise is that of a logarithm, else a line */
};

/* The rate of step k, 1 <= k <= T, with p = k / T and w the warm-up:
 *     p < w:     base p / w
 *     poly:      base (1 - p)^degree; not renormalised where the warm-up ends, so the rate jumps down there,
 *                and it is 0 at k = T, both as the replaced script does (docs/quirks.md)
 *     linear:    base (1 - p) / (1 - w)
 *     constant:  base
 *     poly, constant: base until p = w + c, then base ((1 - p) / (1 - w - c))^degree, without a jump
 * and of the warm-up in steps, i = k - 2, W and D its steps, as DeepSpeed 0.7 does, which takes its first step at the
 * optimizer's own rate and begins to count behind it (docs/quirks.md):
 *     k = 1:     base
 *     i < W:     min + (max - min) i / W, or log(i + 1) / log(W) for i / W
 *     D = 0:     max
 *     else:      min + (max - min) (D - i) / (D - W), at least min */
double schedule_rate(const struct schedule *s, int64_t k);

#endif
