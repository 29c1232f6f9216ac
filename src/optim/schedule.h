/* schedule: the learning rate of an optimizer step. */
#ifndef KILN_OPTIM_SCHEDULE_H
#define KILN_OPTIM_SCHEDULE_H

#include <stdint.h>

enum schedule_kind {
    SCHEDULE_POLY,   /* warm-up, then (1 - p)^degree: the replaced pre-training script, degree 0.5 */
    SCHEDULE_LINEAR, /* warm-up, then a line to 0 at the end: fine-tuning */
    SCHEDULE_CONSTANT,
};

struct schedule {
    enum schedule_kind kind;
    double base;     /* the learning rate at the end of the warm-up */
    double warmup;   /* fraction of the steps */
    double degree;   /* SCHEDULE_POLY only */
    int64_t n_steps; /* T */
};

/* The rate of step k, 1 <= k <= T, with p = k / T and w the warm-up:
 *     p < w:     base p / w
 *     poly:      base (1 - p)^degree; not renormalised where the warm-up ends, so the rate jumps down there,
 *                and it is 0 at k = T, both as the replaced script does (docs/quirks.md)
 *     linear:    base (1 - p) / (1 - w)
 *     constant:  base */
double schedule_rate(const struct schedule *s, int64_t k);

#endif
